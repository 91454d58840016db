// SPDX-License-Identifier: Apache-2.0

// Package jsonout has the JSON that pcn's commands print and that runs leave behind. Keys stay as
// they are; new ones may come. Lists are never null.
package jsonout

import (
	"encoding/json"
	"math"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// ExpectationsFile is the name of the file of [Outcomes] in the folder of a run.
const ExpectationsFile = "expectations.json"

// Quantity is a measured or wanted value.
type Quantity struct {
	Value Number `json:"value"` // in this unit; 1 is a share of 100%
	Unit  string `json:"unit"`  // ns, bps, bytes, share or count
}

// Number is a number that JSON may not have: null if it is infinite or undefined.
type Number float64

// MarshalJSON returns null for what is no number in JSON.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsInf(f, 0) || math.IsNaN(f) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// None is no number: null in JSON.
var None = Number(math.NaN())

// UnitOf returns the unit of a [Quantity] as JSON has it.
func UnitOf(u config.Unit) string {
	return map[config.Unit]string{
		config.UnitTime: "ns", config.UnitRate: "bps", config.UnitBytes: "bytes",
		config.UnitShare: "share", config.UnitCount: "count",
	}[u]
}

// Outcomes is what an experiment's runs came to.
type Outcomes struct {
	Experiment   string        `json:"experiment"`   // name of the experiment
	Pass         bool          `json:"pass"`         // all runs are valid, all bounds are met
	Runs         []RunOutcome  `json:"runs"`         // in the order of the report
	Expectations []Expectation `json:"expectations"` // of expect:, one for each run
	Comparisons  []Comparison  `json:"comparisons"`  // of compare:
	Metrics      []Metric      `json:"metrics"`      // of metrics:, one for each run
	// Seeds has what each of several seeds came to; then measured above are medians over them.
	Seeds []SeedOutcomes `json:"seeds"`
}

// SeedOutcomes is what one of several seeds came to.
type SeedOutcomes struct {
	Seed         uint64        `json:"seed"`         // of all random choices
	Expectations []Expectation `json:"expectations"` // of the seed's runs
	Comparisons  []Comparison  `json:"comparisons"`  // of the seed's runs
	Metrics      []Metric      `json:"metrics"`      // of the seed's runs
}

// Metric is a metric without bounds of one run.
type Metric struct {
	Scheme   string    `json:"scheme"`   // of the run
	Case     string    `json:"case"`     // empty if the experiment has no cases
	Engine   string    `json:"engine"`   // kernel, sim or fluid
	Name     string    `json:"name"`     // in the experiment's file
	Metric   string    `json:"metric"`   // its name in experiment files
	Measured *Quantity `json:"measured"` // over all links, ports or flows; null if it was not
	Interval *Interval `json:"interval"` // of the median over several seeds; else null
	Error    string    `json:"error"`    // why it was not measured; empty if it was
}

// Interval is the 95% confidence interval of a median over several seeds, in the unit of the
// median.
type Interval struct {
	Low   Number `json:"low"`   // its lower end
	High  Number `json:"high"`  // its upper end
	Seeds int    `json:"seeds"` // with a value
}

// RunOutcome is one run.
type RunOutcome struct {
	Scheme  string   `json:"scheme"`  // congestion control of the flows
	Case    string   `json:"case"`    // empty if the experiment has no cases
	Engine  string   `json:"engine"`  // kernel, sim or fluid
	Seed    uint64   `json:"seed"`    // of all random choices
	Verdict string   `json:"verdict"` // valid or invalid
	Reasons []string `json:"reasons"` // why it is invalid
	// what may not be meant, such as a division by zero in a control of your own
	Warnings []string `json:"warnings"`
	TotalS   float64  `json:"total_s"` // wall time of the run
}

// Expectation is one expectation of one run.
type Expectation struct {
	Scheme   string     `json:"scheme"`   // of the run
	Case     string     `json:"case"`     // empty if the experiment has no cases
	Engine   string     `json:"engine"`   // kernel, sim or fluid
	What     string     `json:"what"`     // the expectation in words
	Metric   string     `json:"metric"`   // its name in experiment files
	Paper    string     `json:"paper"`    // what the paper reports, as text; may be empty
	Measured []Quantity `json:"measured"` // one for each link, port or flow
	// Intervals are those of several seeds, one for each measured; else empty.
	Intervals []Interval `json:"intervals"`
	Error     string     `json:"error"` // why it was not measured; empty if it was
	Min       *Quantity  `json:"min"`   // lower bound; null if there is none
	Max       *Quantity  `json:"max"`   // upper bound; null if there is none
	Pass      bool       `json:"pass"`  // all of measured are within the bounds
	// NeedsNs is the duration that the run would need to be judged; null if it was long enough.
	NeedsNs *int64 `json:"needs_duration_ns"`
}

// Comparison compares schemes.
type Comparison struct {
	Engine string        `json:"engine"` // kernel, sim or fluid
	What   string        `json:"what"`   // the comparison in words
	Metric string        `json:"metric"` // its name in experiment files
	Values []SchemeValue `json:"values"` // one for each scheme
	Order  *Relation     `json:"order"`  // required order of schemes; null if none is
	Ratios *Relation     `json:"ratios"` // required ratios of schemes; null if none is
	Pass   bool          `json:"pass"`   // all values are within their bounds, all relations hold
}

// SchemeValue is what a comparison measured of one scheme.
type SchemeValue struct {
	Scheme   string    `json:"scheme"`   // that was run
	Measured *Quantity `json:"measured"` // over all cases; null if it was not measured
	Interval *Interval `json:"interval"` // of the median over several seeds; else null
	Error    string    `json:"error"`    // why it was not measured; empty if it was
	Paper    *Quantity `json:"paper"`    // the paper's number; null if it gives none
	Min      *Quantity `json:"min"`      // lower bound; null if there is none
	Max      *Quantity `json:"max"`      // upper bound; null if there is none
	Judged   bool      `json:"judged"`   // false if the scheme is only shown
	Pass     bool      `json:"pass"`     // it is within its bounds, or is only shown
	// NeedsNs is the duration that its runs would need to be judged; null if they were long enough.
	NeedsNs *int64 `json:"needs_duration_ns"`
	// Ratio to the baseline that pcn compare takes; null elsewhere, if a value is missing, and if
	// the baseline's is 0.
	Ratio *Number `json:"ratio"`
}

// Relation is a required relation between schemes.
type Relation struct {
	Asked    string `json:"asked"`    // such as pcn < pfc
	Measured string `json:"measured"` // the values, as text
	Holds    bool   `json:"holds"`    // the values are so
}

// Compared is what pcn compare prints of an experiment.
type Compared struct {
	Experiment  string       `json:"experiment"`  // name of the experiment
	Baseline    string       `json:"baseline"`    // the scheme that ratios are to
	Comparisons []Comparison `json:"comparisons"` // of compare:
	Runs        []RunOutcome `json:"runs"`        // that were compared
}

// Diff is what pcn diff prints of a pair of runs.
type Diff struct {
	Run         string       `json:"run"`         // experiment, case and scheme
	Same        bool         `json:"same"`        // there is no difference
	Differences []Difference `json:"differences"` // the first of each kind
}

// Difference is one difference of two runs.
type Difference struct {
	What string `json:"what"`  // such as seed, or port S0->S1 in series.csv
	AtNs *int64 `json:"at_ns"` // since t = 0; null if the difference has no time
	A    string `json:"a"`     // value of the first run; none if it has no such object
	B    string `json:"b"`     // value of the second run
}

// Check is a requirement that pcn doctor checks.
type Check struct {
	What  string `json:"what"`  // what is needed, in words
	For   string `json:"for"`   // what needs it: microVM, --native or captures
	OK    bool   `json:"ok"`    // it is met
	Error string `json:"error"` // what is wrong; empty if it is met
	Fix   string `json:"fix"`   // the command that meets it; empty if it is met
}

// Topology is a network, as pcn topo prints it.
type Topology struct {
	Tiers        []Tier   `json:"tiers"`         // from the hosts up
	Nodes        int      `json:"nodes"`         // hosts and switches
	Hosts        int      `json:"hosts"`         // that send and receive
	Links        int      `json:"links"`         // cables, of two directions each
	Ports        int      `json:"ports"`         // ends of links
	FailedLinks  []string `json:"failed_links"`  // names of links that are down
	LongestHops  int      `json:"longest_hops"`  // links of the longest path
	RoundTripNs  uint64   `json:"round_trip_ns"` // of the longest path, propagation alone
	BisectionBps uint64   `json:"bisection_bps"` // from the first half of the hosts to the second
	Built        *Built   `json:"built"`         // with --up; else null
}

// Tier is the nodes at one height of a network.
type Tier struct {
	Name  string   `json:"name"`  // such as host, ToR or spine
	Nodes []string `json:"nodes"` // their names
	Links []Links  `json:"links"` // up and across
	// Oversubscription is the capacity below a switch over that above it; null if no switch has
	// links up, or the worst one lost them all.
	Oversubscription *float64 `json:"oversubscription"`
}

// Links are links of the same kind.
type Links struct {
	Count   int    `json:"count"`    // how many there are
	RateBps uint64 `json:"rate_bps"` // of each direction
	DelayNs uint64 `json:"delay_ns"` // one way
}

// Built is what building a network cost.
type Built struct {
	UpNs         int64 `json:"up_ns"`         // wall time of building it
	DownNs       int64 `json:"down_ns"`       // wall time of taking it down
	MemoryBytes  int64 `json:"memory_bytes"`  // of the whole machine
	WithoutQdisc bool  `json:"without_qdisc"` // this kernel lacks CONFIG_NET_SCH_BPF
}

// OutcomesOf describes what an experiment's runs came to.
func OutcomesOf(experiment string, j result.Judged) Outcomes {
	o := Outcomes{Experiment: experiment, Runs: []RunOutcome{}, Seeds: []SeedOutcomes{}}
	o.addRuns(j)
	s := seedOutcomesOf(j)
	o.Expectations, o.Comparisons, o.Metrics = s.Expectations, s.Comparisons, s.Metrics
	o.judge()
	return o
}

// OutcomesOfSeeds describes what runs with several seeds came to, on each engine.
func OutcomesOfSeeds(experiment string, engines []*result.SeedsSummary) Outcomes {
	o := Outcomes{Experiment: experiment, Runs: []RunOutcome{}, Expectations: []Expectation{},
		Comparisons: []Comparison{}, Metrics: []Metric{}, Seeds: []SeedOutcomes{}}
	for _, summary := range engines {
		engine := summary.Engine()
		for _, x := range summary.Outcomes() {
			o.Expectations = append(o.Expectations, seedsExpectation(engine, x))
		}
		for _, m := range summary.Metrics() {
			o.Metrics = append(o.Metrics, seedsMetric(engine, m))
		}
		o.Comparisons = append(o.Comparisons, ComparisonsOf(summary.Comparisons())...)
		for _, j := range summary.Seeds {
			o.addRuns(j)
			o.Seeds = append(o.Seeds, seedOutcomesOf(j))
		}
	}
	o.judge()
	return o
}

func (o *Outcomes) addRuns(j result.Judged) {
	for _, r := range j.Runs {
		o.Runs = append(o.Runs, runOf(r.Manifest))
	}
}

// judge sets Pass.
func (o *Outcomes) judge() {
	o.Pass = true
	for _, r := range o.Runs {
		o.Pass = o.Pass && r.Verdict != string(result.Invalid)
	}
	for _, x := range o.Expectations {
		o.Pass = o.Pass && x.Pass
	}
	for _, c := range o.Comparisons {
		o.Pass = o.Pass && c.Pass
	}
}

func seedOutcomesOf(j result.Judged) SeedOutcomes {
	s := SeedOutcomes{Seed: j.Seed, Expectations: []Expectation{},
		Comparisons: ComparisonsOf(j.Compared), Metrics: []Metric{}}
	for _, r := range j.Runs {
		for _, x := range r.Outcomes {
			s.Expectations = append(s.Expectations, expectation(r.Manifest, x))
		}
		for _, v := range r.Metrics {
			m := Metric{Scheme: r.Manifest.Scheme, Case: r.Manifest.Case,
				Engine: string(r.Manifest.RanOn()), Name: v.Name, Metric: string(v.Metric),
				Error: text(v.Err)}
			if v.Err == nil {
				m.Measured = quantity(&v.Measured)
			}
			s.Metrics = append(s.Metrics, m)
		}
	}
	return s
}

func seedsExpectation(engine experiment.Engine, o result.SeedsOutcome) Expectation {
	x := Expectation{
		Scheme: o.Scheme, Case: o.Case, Engine: string(engine), What: o.Expect.What,
		Metric: string(o.Expect.Metric), Paper: o.Expect.Paper, Measured: []Quantity{},
		Intervals: []Interval{}, Error: text(o.Err), Min: quantity(o.Expect.Min),
		Max: quantity(o.Expect.Max), Pass: o.Pass, NeedsNs: needsNs(o.Needs),
	}
	for _, s := range o.Spreads {
		x.Measured = append(x.Measured, *quantity(&s.Median))
		x.Intervals = append(x.Intervals, *interval(&s))
	}
	return x
}

func seedsMetric(engine experiment.Engine, o result.SeedsMetric) Metric {
	m := Metric{Scheme: o.Scheme, Case: o.Case, Engine: string(engine), Name: o.Name,
		Metric: string(o.Metric), Interval: interval(o.Spread), Error: text(o.Err)}
	if o.Spread != nil {
		m.Measured = quantity(&o.Spread.Median)
	}
	return m
}

func interval(s *result.Spread) *Interval {
	if s == nil {
		return nil
	}
	return &Interval{Number(s.Low.Value), Number(s.High.Value), s.Seeds}
}

// RunsOf describes runs.
func RunsOf(runs []*result.Run) []RunOutcome {
	all := []RunOutcome{}
	for _, r := range runs {
		all = append(all, runOf(r.Manifest))
	}
	return all
}

func runOf(m result.Manifest) RunOutcome {
	return RunOutcome{
		Scheme: m.Scheme, Case: m.Case, Engine: string(m.RanOn()), Seed: m.Seed,
		Verdict: string(m.Verdict), Reasons: append([]string{}, m.Reasons...),
		Warnings: append([]string{}, m.Warnings...),
		TotalS:   m.Wall.TotalS,
	}
}

func expectation(m result.Manifest, o result.Outcome) Expectation {
	x := Expectation{
		Scheme: m.Scheme, Case: m.Case, Engine: string(m.RanOn()), What: o.Expect.What,
		Metric: string(o.Expect.Metric), Paper: o.Expect.Paper, Measured: []Quantity{},
		Intervals: []Interval{}, Error: text(o.Err), Min: quantity(o.Expect.Min),
		Max: quantity(o.Expect.Max), Pass: o.Pass,
		NeedsNs: needsNs(o.Needs),
	}
	if o.Err == nil {
		x.Measured = quantities(o.Measured)
	}
	return x
}

func quantities(values []experiment.Quantity) []Quantity {
	all := []Quantity{}
	for _, v := range values {
		all = append(all, *quantity(&v))
	}
	return all
}

// needsNs returns nil if a run was long enough.
func needsNs(needs experiment.Duration) *int64 {
	if needs == 0 {
		return nil
	}
	return new(int64(needs))
}

// ComparisonsOf describes comparisons, without ratios to a baseline.
func ComparisonsOf(outcomes []result.CompareOutcome) []Comparison {
	all := []Comparison{}
	for _, o := range outcomes {
		c := Comparison{
			Engine: string(o.Engine), What: o.Compare.What, Metric: string(o.Compare.Metric),
			Values: []SchemeValue{}, Order: relation(o.Order), Ratios: relation(o.Ratios),
			Pass: o.Pass,
		}
		for _, v := range o.Values {
			s := SchemeValue{
				Scheme: v.Scheme, Error: text(v.Err), Interval: interval(v.Spread),
				Paper: quantity(v.Paper),
				Min:   quantity(v.Min), Max: quantity(v.Max), Judged: v.Judged, Pass: v.Pass,
				NeedsNs: needsNs(v.Needs),
			}
			if v.Err == nil {
				s.Measured = quantity(&v.Measured)
			}
			c.Values = append(c.Values, s)
		}
		all = append(all, c)
	}
	return all
}

// SetRatios sets each scheme's ratio to a baseline.
func (c Comparison) SetRatios(baseline string) {
	var to *Quantity
	for _, v := range c.Values {
		if v.Scheme == baseline {
			to = v.Measured
		}
	}
	if to == nil || to.Value == 0 {
		return
	}
	for i, v := range c.Values {
		if v.Measured != nil {
			ratio := v.Measured.Value / to.Value
			c.Values[i].Ratio = &ratio
		}
	}
}

// DiffOf describes the differences of a pair of runs.
func DiffOf(name string, differences []result.Difference) Diff {
	d := Diff{Run: name, Same: len(differences) == 0, Differences: []Difference{}}
	for _, x := range differences {
		d.Differences = append(d.Differences, Difference(x))
	}
	return d
}

// TopologyOf describes a network.
func TopologyOf(n *network.Network) (Topology, error) {
	routes, err := n.Routes()
	if err != nil {
		return Topology{}, err
	}
	hops, delayNs := routes.Longest()
	t := Topology{
		Tiers: []Tier{}, Nodes: len(n.Nodes()), Hosts: len(n.Hosts), Links: len(n.Links),
		Ports: 2 * len(n.Links), FailedLinks: []string{}, LongestHops: hops,
		RoundTripNs: 2 * uint64(delayNs), BisectionBps: uint64(n.Bisection()),
	}
	for _, l := range n.Failed {
		t.FailedLinks = append(t.FailedLinks, l.Name())
	}
	for _, tier := range n.Tiers() {
		one := Tier{Name: tier.Name, Nodes: append([]string{}, tier.Nodes...), Links: []Links{}}
		for _, l := range tier.Links {
			one.Links = append(one.Links, Links(l))
		}
		if o := tier.Oversubscription; o != 0 && !math.IsInf(o, 0) {
			one.Oversubscription = &o
		}
		t.Tiers = append(t.Tiers, one)
	}
	return t, nil
}

func quantity(q *experiment.Quantity) *Quantity {
	if q == nil {
		return nil
	}
	return &Quantity{Number(q.Value), UnitOf(q.Unit)}
}

func relation(r *result.Relation) *Relation {
	if r == nil {
		return nil
	}
	return &Relation{r.Asked, r.Measured, r.Holds}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
