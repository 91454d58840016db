// SPDX-License-Identifier: Apache-2.0

package experiment

// Expect is a bound on a metric of a run. The metric has a value for each of the
// links, ports or flows, and every one of them must be within [Min, Max].
type Expect struct {
	// What describes the expectation in words. Required.
	What string `yaml:"what"`
	// Scheme is the scheme whose run is measured. Default: every scheme.
	Scheme string `yaml:"scheme"`
	// Case is the case whose run is measured. Default: every case.
	Case string `yaml:"case"`
	// Measure is the metric and its arguments.
	Measure `yaml:",inline"`
	// Exit is the exit code that the program has to have. With Exit, Says or JSON the metric need
	// not be named.
	Exit *int `yaml:"exit"`
	// Min and Max are the bounds; at least one is required, except with Exit and Says.
	Min *Quantity `yaml:"min"`
	Max *Quantity `yaml:"max"`
	// Paper is what the paper reports, as reports print it.
	Paper string `yaml:"paper"`
}

// Of reports whether runs of a scheme and a case are measured.
func (x Expect) Of(scheme, caseName string) bool {
	return (x.Scheme == "" || x.Scheme == scheme) && (x.Case == "" || x.Case == caseName)
}

// Compare compares a metric of the runs of several schemes with the paper and with each other. At
// least one of Within, Bounds, Order and Ratios is required.
type Compare struct {
	// What describes the comparison in words. Required.
	What string `yaml:"what"`
	// Measure is the metric and its arguments.
	Measure `yaml:",inline"`
	// Schemes are the measured schemes. Default: all.
	Schemes []string `yaml:"schemes"`
	// CompletedByAll counts only flows that completed under all measured schemes: a scheme that
	// completes no large flow would have the shorter mean. For completion times and slowdowns.
	CompletedByAll bool `yaml:"completed_by_all"`
	// Over is how values of several links, ports, flows and cases become one. Default: max.
	Over Over `yaml:"over"`
	// Cases are the measured cases. Default: all.
	Cases []string `yaml:"cases"`
	// Paper is what the paper reports for each scheme.
	Paper map[string]Quantity `yaml:"paper"`
	// Within is the allowed distance from the paper's value, as a share of it. Default 0: not
	// checked.
	Within Ratio `yaml:"within"`
	// Bounds holds bounds of schemes' values, in place of Within.
	Bounds map[string]Bounds `yaml:"bounds"`
	// Order requires the measured values to be in the order of the paper's; equal ones may be in
	// any order.
	Order bool `yaml:"order"`
	// Ratios bounds every other scheme's value by that of one.
	Ratios *Ratios `yaml:"ratios"`
}

// Judges reports whether the comparison has anything that values are held against. Others are only
// measured, printed and drawn.
func (c Compare) Judges() bool {
	return c.Within != 0 || len(c.Bounds) > 0 || c.Order || c.Ratios != nil
}

// Bounds is the range of a value; at least one end is required.
type Bounds struct {
	Min *Quantity `yaml:"min"`
	Max *Quantity `yaml:"max"`
}

// Ratios requires every other scheme's value to be at least Min times that of scheme To. Both are
// required.
type Ratios struct {
	To  string `yaml:"to"`
	Min Ratio  `yaml:"min"`
}

// Over is how several values become one.
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
