// SPDX-License-Identifier: Apache-2.0

package result

import (
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestDiff(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(r *Run)
		want  []Difference
	}{
		{"the same", func(r *Run) {}, nil},
		{"another machine", func(r *Run) { r.Manifest.Wall = Wall{TotalS: 99, Host: "there"} },
			nil},
		{"another order of rows", func(r *Run) {
			slices.Reverse(r.Flows)
			slices.Reverse(r.Series)
			r.PFC = append(r.PFC[2:], r.PFC[:2]...)
		}, nil},
		{"different settings", func(r *Run) {
			m := &r.Manifest
			m.Tool, m.Case, m.ExperimentSHA256, m.Scheme = "pcn 2", "", "00", "pfc"
			m.Seed, m.DurationNs, m.Kernel = 7, 500, "7.3"
		}, []Difference{
			{What: "experiment_sha256", A: small().Manifest.ExperimentSHA256, B: "00"},
			{What: "kernel", A: "7.2", B: "7.3"},
			{What: "tool", A: "pcn test", B: "pcn 2"},
			{What: "case", A: "low-rate", B: None},
			{What: "scheme", A: "pcn", B: "pfc"},
			{What: "seed", A: "18446744073709551615", B: "7"},
			{What: "duration_ns", A: "400", B: "500"},
		}},
		{"what the run was made from comes first", func(r *Run) {
			m := &r.Manifest
			m.GuestSHA256, m.SchemeSHA256, m.KernelSHA256, m.QEMU = "", "03", "04", "8"
			m.Tool, r.PFC[2].EffectNs = "pcn 2", 13
		}, []Difference{
			{What: "guest_sha256", A: "0a", B: None},
			{What: "scheme_sha256", A: "0b", B: "03"},
			{What: "kernel_sha256", A: "0c", B: "04"},
			{What: "qemu", A: "7.2", B: "8"},
			{What: "tool", A: "pcn test", B: "pcn 2"},
			{What: "S1->S0 in pfc.csv", AtNs: new(int64(7)), A: "effect_ns 12", B: "effect_ns 13"},
		}},
		{"measured by the manifest comes last", func(r *Run) {
			r.Manifest.LatenessMaxNs, r.Manifest.Deterministic = 4, false
			r.Manifest.Machine = QEMU
		}, []Difference{
			{What: "deterministic", A: "true", B: "false"},
			{What: "machine", A: "uml", B: "qemu"},
			{What: "lateness_max_ns", A: "3", B: "4"},
		}},
		{"a PAUSE a little later", func(r *Run) { r.PFC[2].EffectNs = 13 }, []Difference{
			{What: "S1->S0 in pfc.csv", AtNs: new(int64(7)), A: "effect_ns 12", B: "effect_ns 13"},
		}},
		{"a PAUSE less", func(r *Run) { r.PFC = r.PFC[:2] }, []Difference{
			{What: "S1->S0 in pfc.csv", AtNs: new(int64(7)),
				A: "sent_ns 7, effect_ns 12, from S1, to S0, class 1, kind pause", B: None},
		}},
		{"a PAUSE more", func(r *Run) {
			r.PFC = append(r.PFC, PFCEvent{SentNs: 6, EffectNs: 11, From: "S1", To: "S0",
				Kind: Pause})
		}, []Difference{
			{What: "S1->S0 in pfc.csv", AtNs: new(int64(6)), A: None,
				B: "sent_ns 6, effect_ns 11, from S1, to S0, class 0, kind pause"},
		}},
		{"PAUSE and RESUME of one time swapped", func(r *Run) {
			r.PFC[0], r.PFC[1] = r.PFC[1],
				r.PFC[0]
		}, []Difference{
			{What: "S1->S0 in pfc.csv", AtNs: new(int64(-5)), A: "kind pause", B: "kind resume"},
		}},
		{"repeated PAUSE", func(r *Run) {
			r.PauseRepeats[1].Frames, r.PauseRepeats[2].Frames = 7,
				8
		}, []Difference{
			{What: "S1->S0 in pause_repeats.csv", AtNs: new(int64(0)), A: "frames 5",
				B: "frames 7"},
		}},
		{"a row of the series", func(r *Run) {
			r.Series[1].RateBps, r.Series[1].MarkedPackets = 7,
				0
		}, []Difference{
			{What: "port S0->S1 in series.csv", AtNs: new(int64(-100)),
				A: "rate_bps 6, marked_packets 9", B: "rate_bps 7, marked_packets 0"},
		}},
		{"of the series the first in time", func(r *Run) {
			r.Series[3].RateBps,
				r.Series[2].CNPs = 1, 4
		}, []Difference{
			{What: "sender F2 in series.csv", AtNs: new(int64(-100)), A: "cnps 3", B: "cnps 4"},
		}},
		{"a frame before a bin", func(r *Run) { r.PFC[0].EffectNs, r.Series[3].RateBps = 1, 1 },
			[]Difference{
				{What: "S1->S0 in pfc.csv", AtNs: new(int64(-5)), A: "effect_ns 0",
					B: "effect_ns 1"},
			}},
		{"a bin before a frame", func(r *Run) { r.PFC[2].EffectNs, r.Series[3].RateBps = 1, 1 },
			[]Difference{
				{What: "flow F2 in series.csv", AtNs: new(int64(0)), A: "rate_bps 0",
					B: "rate_bps 1"},
			}},
		{"a flow, and a port", func(r *Run) { r.Flows[1].EndNs, r.Ports[0].SentBytes = nil, 7 },
			[]Difference{
				{What: "flow F10 in flows.csv", A: "end_ns 0", B: "end_ns none"},
				{What: "port S0->S1 in ports.csv", A: "sent_bytes 8000", B: "sent_bytes 7"},
			}},
		{"the first of the flows, by name", func(r *Run) {
			r.Flows[0].Packets,
				r.Flows[1].Packets = 0, 9
		}, []Difference{
			{What: "flow F2 in flows.csv", A: "packets 3", B: "packets 0"},
		}},
		{"a completion", func(r *Run) { r.Completions[0].FCTNs = nil }, []Difference{
			{What: "flow F2 in completion.csv", A: "fct_ns 9", B: "fct_ns none"},
		}},
		{"a port's state, before another event", func(r *Run) {
			r.States = []State{{TimeNs: -100, Port: "S0->S1", TCD: Draining, Congested: true}}
			r.Series[3].RateBps = 1
		}, []Difference{
			{What: "port S0->S1 in states.csv", AtNs: new(int64(-100)), A: None,
				B: formatColumns(columnsOf(State{TimeNs: -100, Port: "S0->S1", TCD: Draining,
					Congested: true}, "csv"))},
		}},
		{"no ports", func(r *Run) { r.Ports = nil }, []Difference{
			{What: "port S0->S1 in ports.csv", A: formatColumns(columnsOf(small().Ports[0], "csv")),
				B: None},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			other := small()
			tc.spoil(other)
			qt.Assert(t, qt.DeepEquals(Diff(small(), other), tc.want))

			var swapped []Difference
			for _, d := range tc.want {
				d.A, d.B = d.B, d.A
				swapped = append(swapped, d)
			}
			qt.Assert(t, qt.DeepEquals(Diff(other, small()), swapped))
		})
	}
}

// Every field of the manifest is an input, a setting or measured, under the name it has in the
// file.
func TestDiffKnowsTheManifest(t *testing.T) {
	var names []string
	for _, c := range columnsOf(Manifest{}, "json") {
		names = append(names, c.name)
	}
	for _, name := range slices.Concat(inputs, settings) {
		qt.Check(t, qt.SliceContains(names, name))
	}
	qt.Check(t, qt.SliceContains(names, "wall"))
}

func TestDifferenceInWords(t *testing.T) {
	qt.Check(t, qt.Equals(Difference{What: "seed", A: "1", B: "2"}.String(), "seed: 1 / 2"))
	qt.Check(t, qt.Equals(Difference{What: "flow F0 in series.csv", AtNs: new(int64(1_200_000)),
		A: "rate_bps 1", B: None}.String(),
		"at 1.2ms: flow F0 in series.csv: rate_bps 1 / none"))
}
