// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"maps"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
)

// with returns the smallest file with more lines, at another rate of the links.
func with(t *testing.T, rate, lines string) *Experiment {
	t.Helper()
	file := strings.Replace(smallest, "kind: fig1", "kind: fig1, rate: "+rate, 1) + lines
	e, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	return e
}

// values are those of a section's parameters by key, as files write them.
type values map[string]string

// with returns the values with some replaced.
func (v values) with(others values) values {
	changed := maps.Clone(v)
	maps.Copy(changed, others)
	return changed
}

// sectionOf returns the values of all parameters of a section, and its set.
func sectionOf(e *Experiment, section string) values {
	v := e.Section(section)
	all := values{}
	if v.Set() != "" {
		all["set"] = v.Set()
	}
	for _, p := range e.Catalogue().Sections()[section].Params {
		all[p.Key] = v.Get(p.Key).String()
	}
	return all
}

func TestSetsOfDCQCN(t *testing.T) {
	paper := values{
		"loss_cut": "true",
		"set":      "paper", "g": "0.00390625", "alpha_timer": "55us", "rate_timer": "55us",
		"byte_counter": "10MB", "fast_recovery": "5", "rate_ai": "40Mbps", "rate_hai": "200Mbps",
		"cnp_interval": "50us", "decrease_interval": "0ns", "clamp_target": "true",
		"alpha_first": "false", "ue_resets": "false", "initial_alpha": "1", "min_rate": "100Mbps",
		"decrease_clock": "false",
		"doubt":          "false", "careful_start": "false", "doubt_hold": "500ms",
		"marking.kmin": "5KB", "marking.kmax": "200KB", "marking.pmax": "0.01",
	}
	ns3 := paper.with(values{
		"loss_cut": "false",
		"set":      "ns3-rdma", "rate_timer": "60us", "byte_counter": "300MB",
		"alpha_first":   "true",
		"initial_alpha": "0.5", "marking.kmin": "40KB", "marking.kmax": "1MB", "marking.pmax": "1",
	})
	hpcc := values{
		"loss_cut": "false",
		"set":      "hpcc", "g": "0.00390625", "alpha_timer": "1us", "rate_timer": "300us",
		"byte_counter": "0B", "fast_recovery": "1", "rate_ai": "20Mbps", "rate_hai": "200Mbps",
		"cnp_interval": "0ns", "decrease_interval": "4us", "clamp_target": "false",
		"alpha_first": "false", "ue_resets": "false", "initial_alpha": "1", "min_rate": "1Gbps",
		"decrease_clock": "true",
		"doubt":          "false", "careful_start": "false", "doubt_hold": "500ms",
		"marking.kmin": "400KB", "marking.kmax": "1.6MB", "marking.pmax": "0.2",
	}
	const others = "dcqcn: {g: 1/2, marking: {kmax: 50KB}, set: ns3-rdma, clamp_target: false}"
	for _, tc := range []struct {
		name, rate, lines string
		want              values
	}{
		{"default", "40Gbps", "", paper},
		{"paper", "100Gbps", "dcqcn: {set: paper}", paper},
		{"slow link", "100Mbps", "dcqcn: {set: paper}", paper.with(values{"min_rate": "10Mbps"})},
		{"ns3-rdma", "100Gbps", "dcqcn: {set: ns3-rdma}", ns3},
		{"hpcc", "100Gbps", "dcqcn: {set: hpcc}", hpcc},
		{"other values", "40Gbps", others, ns3.with(values{
			"g": "0.5", "clamp_target": "false", "marking.kmax": "50KB",
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.DeepEquals(sectionOf(with(t, tc.rate, tc.lines), "dcqcn"), tc.want))
		})
	}
}

func TestSetsOfTIMELY(t *testing.T) {
	snippet := values{
		"loss_cut": "true",
		"set":      "snippet", "ewma": "0.02", "beta": "0.8", "t_low": "0ns", "t_high": "1ms",
		"min_rtt": "0ns", "delta": "100Mbps", "hai_after": "5", "hai_factor": "5",
		"delta_factor": "true", "segment": "0B", "max_cut": "0.5", "min_rate": "100Mbps",
		"tcd_hold": "55us", "per_rtt": "false", "count_increases": "false",
	}
	paper := snippet.with(values{
		"set": "paper", "ewma": "0.875", "t_low": "50us", "t_high": "500us", "min_rtt": "20us",
		"delta": "10Mbps", "delta_factor": "false", "segment": "64KB", "max_cut": "1",
	})
	for _, tc := range []struct {
		name, lines string
		want        values
	}{
		{"default", "", snippet},
		{"paper", "timely: {set: paper}", paper},
		{"ns3-rdma", "timely: {set: ns3-rdma}", paper.with(values{
			"loss_cut": "false",
			"set":      "ns3-rdma", "hai_after": "0", "hai_factor": "1", "segment": "16KB",
			"min_rate": "1Gbps",
		})},
		{"other values", "timely: {segment: 0, set: paper, delta_factor: true}", paper.with(values{
			"segment": "0B", "delta_factor": "true",
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.DeepEquals(sectionOf(with(t, "100Gbps", tc.lines), "timely"), tc.want))
		})
	}
}

func TestQCNScalesWithTheLineRate(t *testing.T) {
	want := values{
		"qeq": "26KB", "w": "2", "sample_base": "150KB", "sample_jitter": "0.15", "timer": "15ms",
		"byte_counter": "150KB", "fast_recovery": "5", "rate_ai": "5Mbps", "rate_hai": "50Mbps",
		"gd": "0.0078125", "min_decrease_factor": "0.5", "min_rate": "5Mbps",
		"hai_after_packets": "500", "half_from": "ai", "loss_cut": "true",
	}
	qt.Assert(t, qt.DeepEquals(sectionOf(with(t, "10Gbps", ""), "qcn"), want))

	want = want.with(values{"qeq": "104KB", "rate_ai": "20Mbps", "rate_hai": "200Mbps"})
	qt.Assert(t, qt.DeepEquals(sectionOf(with(t, "40Gbps", ""), "qcn"), want))

	want = want.with(values{ // a queue of less would be no queue
		"qeq": "26KB", "rate_ai": "5kbps", "rate_hai": "50kbps", "min_rate": "1Mbps",
	})
	qt.Assert(t, qt.DeepEquals(sectionOf(with(t, "10Mbps", ""), "qcn"), want))
}

// At every rate that a link may have, what the file does not give is in range.
func TestDefaultsAreInRange(t *testing.T) {
	for _, rate := range []string{"1Mbps", "999Mbps", "400Gbps", "800Gbps"} {
		for _, set := range []string{"dcqcn: {set: ns3-rdma}",
			"dcqcn: {set: hpcc}\ntimely: {set: ns3-rdma}", "timely: {set: paper}"} {
			with(t, rate, set)
		}
	}
}

func TestMarkingOf(t *testing.T) {
	e := with(t, "10Gbps", "dcqcn: {marking: {kmin: 6KB}}")
	for scheme, want := range map[string]Marking{
		"dcqcn":     {KMin: 6e3, KMax: 200e3, PMax: 0.01},
		"dcqcn+tcd": {KMin: 6e3, KMax: 200e3, PMax: 0.01},
		"pcn_dctcp": {KMin: 30e3, KMax: 30e3, PMax: 1},
		"cubic":     {KMin: 30e3, KMax: 30e3, PMax: 1},
		"ldcp":      {KMin: 5e3, KMax: 20e3, PMax: 1},

		"timely+tcd": {KMin: 6e3, KMax: 200e3, PMax: 0.01},
	} {
		got, ok := e.MarkingOf(scheme)
		qt.Assert(t, qt.IsTrue(ok), qt.Commentf("%s", scheme))
		qt.Assert(t, qt.Equals(got, want))
	}

	// One marking for all.
	e = with(
		t, "10Gbps", "dcqcn: {marking: {kmin: 6KB}}\nmarking: {kmin: 1KB, kmax: 2KB, pmax: 0.5}",
	)
	for _, scheme := range []string{"dcqcn", "pcn_dctcp", "dctcp", "reno", "ldcp", "dcqcn+tcd",
		"timely+tcd"} {
		got, ok := e.MarkingOf(scheme)
		qt.Assert(t, qt.IsTrue(ok), qt.Commentf("%s", scheme))
		qt.Assert(t, qt.Equals(got, Marking{KMin: 1e3, KMax: 2e3, PMax: 0.5}))
	}
	for _, scheme := range []string{"pfc", "pcn", "timely", "qcn", "ibcc", "ibcc+tcd", "tcp"} {
		_, ok := e.MarkingOf(scheme)
		qt.Assert(t, qt.IsFalse(ok), qt.Commentf("%s", scheme))
	}
}

// Without a threshold of its own, WRED drops a little above where marking begins.
func TestWREDStartsAboveMarking(t *testing.T) {
	for _, tc := range []struct {
		name, lines, want string
	}{
		{"default", "", "7.5KB"},
		{"own marking", "ldcp: {marking: {kmin: 6KB}}", "9KB"},
		{
			"one marking for all",
			"ldcp: {marking: {kmin: 6KB}}\nmarking: {kmin: 1KB, kmax: 2KB, pmax: 0.5}", "1.5KB",
		},
		{"own threshold", "ldcp: {wred_k: 7KB}", "7KB"},
		{"always", "ldcp: {wred_k: 0}", "0B"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(
				t, qt.Equals(sectionOf(with(t, "10Gbps", tc.lines), "ldcp")["wred_k"], tc.want),
			)
		})
	}
}

func TestPFCOn(t *testing.T) {
	for _, tc := range []struct {
		name, pfc string
		pcn, ldcp bool
	}{
		{"default", "{}", true, true},
		{"off", "{off: true}", false, false},
		{"for one scheme", "{schemes: [pcn]}", true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := strings.Replace(smallest, "[pfc]", "[pcn, ldcp]", 1) + "switch: {pfc: " +
				tc.pfc + "}"
			e, err := Parse("f.yaml", []byte(file))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(e.PFCOn("pcn"), tc.pcn))
			qt.Check(t, qt.Equals(e.PFCOn("ldcp"), tc.ldcp))
		})
	}
}

func TestEverySchemeIsAccepted(t *testing.T) {
	catalogue := scheme.Builtin()
	all := append(catalogue.Names(), scheme.KernelControls()...)
	for _, name := range all {
		file := strings.Replace(smallest, "[pfc]", "["+name+"]", 1)
		if s, err := catalogue.Lookup(name); err == nil && s.OnlySimulated() != nil {
			file += "engine: sim\n"
		}
		e, err := Parse("f.yaml", []byte(file))
		qt.Assert(t, qt.IsNil(err))
		s, err := e.Scheme(name)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(s.Name, name))
	}
	for _, known := range []string{"pcn", "pfc", "dcqcn+tcd", "cubic"} {
		qt.Assert(t, qt.SliceContains(all, known)) // they are found
	}
	qt.Assert(t, qt.IsTrue(scheme.IsKernelControl("dctcp")))
	qt.Assert(t, qt.IsFalse(scheme.IsKernelControl("pcn_dctcp")))

	// The lists are the caller's own.
	catalogue.Names()[0], scheme.KernelControls()[0] = "x", "x"
	qt.Assert(t, qt.Not(qt.Equals(catalogue.Names()[0], "x")))
	qt.Assert(t, qt.IsTrue(scheme.IsKernelControl("reno")))
}
