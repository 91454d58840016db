// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/sweep"
)

// Plan is a figure on an engine: a sweep, and which of its metrics each claim is about.
type Plan struct {
	Figure *Figure
	Engine experiment.Engine
	Part   *Part
	Quick  bool
	// Declared says that the parameters are those of declared.yaml.
	Declared bool
	Sweep    *sweep.Sweep
	Dir      string // of the results
	File     string // the sweep's, in Dir

	metrics []int // of each claim, indices into the sweep's
}

// sweepFile is the name of a plan's sweep in its folder, for Slurm's tasks and for readers.
const sweepFile = "sweep.yaml"

// newPlan writes the figure's sweep for an engine into a folder in Options.Out, and reads it. It
// returns nil if the engine runs nothing of the figure.
func newPlan(f *Figure, engine experiment.Engine, o Options) (*Plan, error) {
	part := f.part(engine, o.Quick)
	if part == nil {
		return nil, nil
	}
	p := &Plan{Figure: f, Engine: engine, Part: new(*part), Quick: o.Quick,
		Declared: o.Declared, Dir: filepath.Join(o.Out, f.ID(), string(engine))}
	if o.Seeds != nil {
		p.Part.Seeds = o.Seeds
	}
	if o.Declared || len(o.Set) > 0 || len(o.Schemes) > 0 {
		if err := p.parse(o.Load); err != nil {
			return nil, err
		}
	}
	if len(o.Schemes) > 0 {
		p.Part.Schemes = slices.DeleteFunc(slices.Clone(p.Sweep.Schemes),
			func(s string) bool { return !slices.Contains(o.Schemes, s) })
		if len(p.Part.Schemes) == 0 {
			return nil, nil
		}
		if err := p.parse(o.Load); err != nil {
			return nil, err
		}
	}
	if o.Declared {
		p.Dir += declaredSuffix
		if err := p.declare(); err != nil {
			return nil, err
		}
	}
	if len(o.Set) > 0 {
		p.override(ofSchemes(o.Set, p.Sweep.Schemes))
	}
	if err := p.write(o.Load); err != nil {
		return nil, err
	}
	return p, nil
}

// declaredSuffix ends the name of the folder of runs with declared parameters.
const declaredSuffix = "-declared"

// parse makes the plan's sweep without a file.
func (p *Plan) parse(load sweep.Loader) error {
	text, err := p.text()
	if err == nil {
		p.Sweep, err = sweep.Parse(p.file(), text, load)
	}
	return err
}

func (p *Plan) file() string { return filepath.Join(p.Dir, sweepFile) }

// write writes the plan's sweep into its folder, and reads it.
func (p *Plan) write(load sweep.Loader) error {
	text, err := p.text()
	if err != nil {
		return err
	}
	p.File = p.file()
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of a figure: %w", err)
	}
	if err := os.WriteFile(p.File, text, 0o644); err != nil {
		return fmt.Errorf("write the sweep of a figure: %w", err)
	}
	p.Sweep, err = sweep.Parse(p.File, text, load)
	return err
}

// part returns what an engine runs of the figure; nil if nothing.
func (f *Figure) part(engine experiment.Engine, quick bool) *Part {
	switch {
	case engine == experiment.EngineKernel:
		return f.Kernel
	case quick:
		return f.Quick
	default:
		return f.Sim
	}
}

// Smaller says what --quick makes smaller than it is in the whole figure; empty if nothing.
func (p *Plan) Smaller() string {
	if !p.Quick || p.Figure.Sim == nil {
		return ""
	}
	whole, quick := p.Figure.Sim, p.Part
	var all []string
	if n := len(quick.Seeds); n < len(whole.Seeds) {
		all = append(all, fmt.Sprintf("%d of %d seeds", n, len(whole.Seeds)))
	}
	if quick.Cases != nil && !slices.Equal(quick.Cases, whole.Cases) {
		all = append(all, "cases "+strings.Join(quick.Cases, ", "))
	}
	for _, key := range slices.Sorted(maps.Keys(quick.Set)) {
		if value := quick.Set[key]; value != whole.Set[key] {
			all = append(all, key+" "+value)
		}
	}
	return strings.Join(all, "; ")
}

// text returns the sweep file.
func (p *Plan) text() ([]byte, error) {
	f := p.Figure
	file := mapping()
	add := func(key string, value any) error {
		var n yaml.Node
		if err := n.Encode(value); err != nil {
			return fmt.Errorf("write %s: %w", key, err)
		}
		file.Content = append(file.Content, scalar(key), &n)
		return nil
	}
	for _, entry := range []struct {
		key   string
		value any
		skip  bool
	}{
		{"name", f.ID(), false},
		{"title", f.Paper.Title + ", " + f.Title, false},
		{"experiment", f.Experiment, false},
		{"cases", p.Part.Cases, p.Part.Cases == nil},
		{"schemes", p.Part.Schemes, p.Part.Schemes == nil},
		{"set", p.Part.Set, len(p.Part.Set) == 0},
		{"seeds", ranges(p.Part.Seeds), false},
		{"keep", string(p.keep()), false},
	} {
		if entry.skip {
			continue
		}
		if err := add(entry.key, entry.value); err != nil {
			return nil, err
		}
	}
	metrics, err := p.metricNodes()
	if err != nil {
		return nil, err
	}
	file.Content = append(file.Content, scalar("metrics"), metrics)
	return yaml.Marshal(file)
}

// keep says what stays of the runs: those that are drawn need all.
func (p *Plan) keep() sweep.Keep {
	if p.Figure.Draw {
		return sweep.KeepAll
	}
	return sweep.KeepMetrics
}

// metricNodes returns the metrics of the sweep, each once, and notes which of them a claim is
// about.
func (p *Plan) metricNodes() (*yaml.Node, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	var texts []string
	p.metrics = nil
	keys := append(config.KeysOf(reflect.TypeFor[experiment.Measure]()), "over")
	for _, c := range p.Figure.Claims {
		m := only(c.node, keys)
		text, err := yaml.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("write a metric: %w", err)
		}
		at := slices.Index(texts, string(text))
		if at < 0 {
			at = len(texts)
			texts = append(texts, string(text))
			name := strings.ReplaceAll(string(c.Metric), "_", "-") + "-" + strconv.Itoa(at+1)
			m.Content = append([]*yaml.Node{scalar("name"), scalar(name)}, m.Content...)
			list.Content = append(list.Content, m)
		}
		p.metrics = append(p.metrics, at)
	}
	return list, nil
}

// only returns the mapping with these keys only.
func only(n *yaml.Node, keys []string) *yaml.Node {
	m := mapping()
	for i := 0; i+1 < len(n.Content); i += 2 {
		if slices.Contains(keys, n.Content[i].Value) {
			m.Content = append(m.Content, scalar(n.Content[i].Value), n.Content[i+1])
		}
	}
	return m
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func scalar(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// ranges writes seeds as ranges: 1..5 for 1 to 5.
func ranges(seeds experiment.Seeds) []string {
	var list []string
	for i := 0; i < len(seeds); {
		last := i
		for last+1 < len(seeds) && seeds[last+1] == seeds[last]+1 {
			last++
		}
		text := strconv.FormatUint(seeds[i], 10)
		if last > i {
			text += ".." + strconv.FormatUint(seeds[last], 10)
		}
		list = append(list, text)
		i = last + 1
	}
	return list
}

// Seconds returns how long the plan is expected to take one CPU.
func (p *Plan) Seconds() float64 {
	return float64(p.Part.Cost) / float64(experiment.Second) * float64(len(p.Part.Seeds))
}
