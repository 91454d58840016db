// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

// Figures chooses what a report draws. The report chooses for keys that are left out.
type Figures struct {
	// Pause are links in the direction of the PAUSE frames, the one drawn at the back first.
	Pause []string `yaml:"pause"`
	// Throughput are flows, the one stacked on top first.
	Throughput []string `yaml:"throughput"`
	// Queues are egress ports.
	Queues []string `yaml:"queues"`
	// SendRate are flows whose sender's rate is drawn (PCN, Fig. 3).
	SendRate []string `yaml:"send_rate"`
	// Rates are egress ports whose sent rate is drawn.
	Rates []string `yaml:"rates"`
	// Sizes divides flows into classes: below the first size, from there to the second, and so on.
	// They must grow. Default: 10KB, 100KB, 1MB.
	Sizes []Bytes `yaml:"sizes"`
	// Reference holds lines from the paper, drawn beside the measured ones.
	Reference []Reference `yaml:"reference"`
}

// Classes returns the size classes that figures draw.
func (f Figures) Classes() []Sizes {
	bounds := f.Sizes
	if bounds == nil {
		bounds = []Bytes{10e3, 100e3, 1e6}
	}
	var classes []Sizes
	from := Bytes(0)
	for _, to := range append(slices.Clone(bounds), 0) {
		classes = append(classes, Sizes{from, to})
		from = to
	}
	return classes
}

// FigureName is one of the figures that have a [Reference].
type FigureName string

// The figures of [Figures] with a line for each flow or port.
const (
	FigureThroughput FigureName = "throughput"
	FigureQueue      FigureName = "queue"
	FigureSendRate   FigureName = "send_rate"
	FigureRates      FigureName = "rates"
)

func figureNames() []FigureName {
	return []FigureName{FigureThroughput, FigureQueue, FigureSendRate, FigureRates}
}

// Reference is a line from the paper.
type Reference struct {
	// Figure is the figure that shows it. Required.
	Figure FigureName `yaml:"figure"`
	// Scheme is the scheme that it belongs to. Default: every scheme's figure shows it.
	Scheme string `yaml:"scheme"`
	// Name is the flow, or for queue and rates the egress port. Required.
	Name string `yaml:"name"`
	// Label names its source, such as "PCN, Fig. 2(b)". Required.
	Label string `yaml:"label"`
	// Points are in order of time. Required.
	Points []Point `yaml:"points"`
}

// Point is a point of a [Reference], written as [3.35ms, 1.25Gbps].
type Point struct {
	At    Duration
	Value Quantity
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (p *Point) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		return config.Bad("want a time and a value", "write [3.35ms, 1.25Gbps]")
	}
	if err := p.At.UnmarshalYAML(n.Content[0]); err != nil {
		return err
	}
	return p.Value.UnmarshalYAML(n.Content[1])
}
