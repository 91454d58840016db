// SPDX-License-Identifier: Apache-2.0

package experiment

// Expect is a bound on a metric of a run. The metric has a value for each of the
// links, ports or flows, and every one of them must be within [Min, Max].
type Expect struct {
	// What says in words what is expected. Required.
	What string `yaml:"what"`
	// Scheme is the one whose run is measured. Default: that of every scheme.
	Scheme string `yaml:"scheme"`
	// Case is the one whose run is measured. Default: that of every case.
	Case string `yaml:"case"`
	// Measure is what is measured.
	Measure `yaml:",inline"`
	// Min and Max are the bounds; at least one is required.
	Min *Quantity `yaml:"min"`
	Max *Quantity `yaml:"max"`
	// Paper is what the paper reports, as it is to be printed.
	Paper string `yaml:"paper"`
}

// Compare is a metric of the runs of several schemes, held against what the paper
// reports and against each other. At least one of Within, Bounds, Order and Ratios is required.
type Compare struct {
	// What says in words what is compared. Required.
	What string `yaml:"what"`
	// Measure is what is measured.
	Measure `yaml:",inline"`
	// Schemes are those that are measured. Default: all.
	Schemes []string `yaml:"schemes"`
	// CompletedByAll is whether only flows count that completed in the runs of all schemes which
	// are measured: one that completes no large flow has the shorter mean. For completion times and
	// slowdowns.
	CompletedByAll bool `yaml:"completed_by_all"`
	// Over makes one value of those of several links, ports, flows and cases. Default: max.
	Over Over `yaml:"over"`
	// Cases are those that are measured. Default: all.
	Cases []string `yaml:"cases"`
	// Paper is what the paper reports for each scheme.
	Paper map[string]Quantity `yaml:"paper"`
	// Within is how far, as a share of the paper's value, a scheme's may be from it. Default 0:
	// this is not checked.
	Within Ratio `yaml:"within"`
	// Bounds are what a scheme's value is held against in place of Within.
	Bounds map[string]Bounds `yaml:"bounds"`
	// Order is whether the measured values must be in the order of the paper's; where those are
	// equal, in any.
	Order bool `yaml:"order"`
	// Ratios bounds every other scheme's value against that of one.
	Ratios *Ratios `yaml:"ratios"`
}

// Bounds are where a value may be; at least one is required.
type Bounds struct {
	Min *Quantity `yaml:"min"`
	Max *Quantity `yaml:"max"`
}

// Ratios asks for every other scheme's value to be at least Min times that of scheme To. Both are
// required.
type Ratios struct {
	To  string `yaml:"to"`
	Min Ratio  `yaml:"min"`
}

// Over makes one value of several.
type Over string

// The values of [Over].
const (
	OverMax  Over = "max"
	OverMin  Over = "min"
	OverMean Over = "mean"
	OverP50  Over = "p50" // the median
	OverP99  Over = "p99" // the 99th percentile
)

func overs() []Over {
	return []Over{OverMax, OverMin, OverMean, OverP50, OverP99}
}
