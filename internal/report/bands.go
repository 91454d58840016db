// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// Bands collects runs of one case that differ in their scheme and seed, and draws their curves over
// time: the median of the seeds, and the band that holds all but a twentieth of them at either end.
type Bands struct {
	e       *experiment.Experiment
	kinds   []bandKind
	schemes []string
	values  map[bandKey][]result.Timeline
}

// bandKind is a figure with a curve for each flow or port.
type bandKind struct {
	curves
	of       func(r *result.Run) timelineOf
	sentence string // its heading, up to the values, for the first object
	sum      func(result.Timeline) float64
}

type bandKey struct {
	kind           int
	scheme, object string
}

// NewBands returns an empty collection of runs of the experiment, which is that of the case.
func NewBands(e *experiment.Experiment) *Bands {
	f := e.Figures
	return &Bands{
		e: e, values: map[bandKey][]result.Timeline{},
		kinds: []bandKind{
			{curves{name: experiment.FigureThroughput, title: "Throughput", yLabel: "Rate",
				unit: experiment.UnitRate, objects: f.Throughput},
				func(r *result.Run) timelineOf { return r.FlowRate },
				"On average %s receives", meanFrom0},
			{curves{name: experiment.FigureQueue, title: "Queue length", yLabel: "Queue",
				unit: experiment.UnitBytes, objects: f.Queues},
				func(r *result.Run) timelineOf { return r.QueueMax },
				"The queue of %s grows to", result.Timeline.Max},
			{curves{name: experiment.FigureSendRate, title: "Sender's rate", yLabel: "Rate",
				unit: experiment.UnitRate, objects: f.SendRate},
				func(r *result.Run) timelineOf { return r.SendRate },
				"On average %s may send", meanFrom0},
			{curves{name: experiment.FigureRates, title: "Port rate", yLabel: "Rate",
				unit: experiment.UnitRate, objects: f.Rates},
				func(r *result.Run) timelineOf { return r.PortRate },
				"On average %s sends", meanFrom0},
		},
	}
}

// Add adds a run. All have bins of the same length.
func (b *Bands) Add(r *result.Run) error {
	scheme := r.Manifest.Scheme
	if !slices.Contains(b.schemes, scheme) {
		b.schemes = append(b.schemes, scheme)
	}
	for i, kind := range b.kinds {
		for _, object := range kind.objects {
			t, err := kind.of(r)(object)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", kind.title, object, err)
			}
			key := bandKey{i, scheme, object}
			b.values[key] = append(b.values[key], t)
		}
	}
	return nil
}

// figures draws a figure for each kind that the experiment asks for, with a panel for each scheme.
func (b *Bands) figures() []*figure {
	var all []*figure
	for i := range b.kinds {
		if f := b.figure(i); f != nil {
			all = append(all, f)
		}
	}
	return all
}

const bandShare = 0.05 // of the seeds, outside of the band on either side

func (b *Bands) figure(i int) *figure {
	kind := b.kinds[i]
	if len(kind.objects) == 0 || len(b.schemes) == 0 {
		return nil
	}
	f := &figure{title: kind.title, xLabel: "Time (ms)",
		caption: fmt.Sprintf("Median of the seeds in each %s, and all but a twentieth of them at "+
			"either end. Rings are read off the paper.", b.e.Sample)}
	top := topOf(b.e.Figures.Reference, kind.name)
	for n, object := range kind.objects {
		line := flowColors[n%len(flowColors)]
		f.legend = append(f.legend, legendEntry{object, swatch{line: line}})
		for _, scheme := range b.schemes {
			_, _, high := bandOf(b.values[bandKey{i, scheme, object}])
			top = max(top, high.Max())
		}
	}
	first := b.values[bandKey{i, b.schemes[0], kind.objects[0]}][0]
	f.xMin, f.xMax = toMs(first.StartNs), toMs(first.TimeNs(len(first.Values)))
	unit, scale := axisUnit(kind.unit, top)
	var values []namedValue
	for _, scheme := range b.schemes {
		_, middle, _ := bandOf(b.values[bandKey{i, scheme, kind.objects[0]}])
		values = append(values, namedValue{who: strings.ToUpper(scheme),
			value: kind.sum(middle), unit: kind.unit})
	}
	f.sentence = sentenceOf(fmt.Sprintf(kind.sentence, kind.objects[0]), values)
	for _, scheme := range b.schemes {
		p := f.newPlot(kind.yLabel+" ("+unit+")", 0, headroom(top*scale))
		for n, object := range kind.objects {
			line := flowColors[n%len(flowColors)]
			low, middle, high := bandOf(b.values[bandKey{i, scheme, object}])
			p.Add(&area{low: pointsOf(low, scale, f.xMin, f.xMax),
				high: pointsOf(high, scale, f.xMin, f.xMax), fill: pale(line), line: pale(line),
				name: object, band: line})
			p.Add(&curve{points: pointsOf(middle, scale, f.xMin, f.xMax), name: object,
				swatch: swatch{line: line}})
		}
		addReferences(p, b.references(kind.name, scheme), scale, kind.objects, notStacked)
		p.Add(&panelLabel{text: scheme})
		f.panels = append(f.panels, panel{plot: p, height: panelHeight})
	}
	return f
}

// references returns the paper's data points for a panel.
func (b *Bands) references(name experiment.FigureName, scheme string) []experiment.Reference {
	return referencesOf(b.e, name, runView{Run: &result.Run{
		Manifest: result.Manifest{Scheme: scheme},
	}})
}

// bandOf returns the band and the median of timelines, at least one.
func bandOf(seeds []result.Timeline) (low, middle, high result.Timeline) {
	low, middle, high = seeds[0], seeds[0], seeds[0]
	for _, t := range []*result.Timeline{&low, &middle, &high} {
		t.Values = make([]float64, len(seeds[0].Values))
	}
	at := make([]float64, len(seeds))
	last := float64(len(seeds) - 1)
	for i := range middle.Values {
		for k, t := range seeds {
			at[k] = t.Values[i]
		}
		slices.Sort(at)
		low.Values[i] = at[int(math.Floor(bandShare*last))]
		middle.Values[i] = result.Median(at)
		high.Values[i] = at[int(math.Ceil((1-bandShare)*last))]
	}
	return low, middle, high
}

// bandNote tells a band from its curve.
const bandNote = "all but a twentieth at either end"

// pale returns a light shade of a colour.
func pale(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	mix := func(v uint32) uint8 { return uint8((v>>8 + 3*255) / 4) }
	return color.RGBA{R: mix(r), G: mix(g), B: mix(b), A: 0xff}
}
