// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/hpcc"
)

// twoWay is a network of 16 hosts, with the settings of HPCC's run.py.
const twoWay = `
name: two-way
engine: sim
topology: {file: topology.txt}
trace: {file: flow.txt}
frame: %dB
schemes: [%s]
%s
switch: {buffer: %dMiB, marking_by_rate: true, pfc: {dynamic: {alpha: 1/8, by_rate: true,
  headroom: 3, reserve: 4096B, xon_offset: 3072B}}}
transport: {acks: %s, ack_size: 48B, cnp: ack%s}
warmup: 0ms
duration: 40ms
sample: 1ms
files:
  topology.txt: |
%s
  flow.txt: |
%s
`

// A control of HPCC's simulator: its name here, its parameters, our frame that is as long on the
// wire, the payload of theirs, and by how much it is more than ours. Which packets are marked is
// random under DCQCN, so the mean of several seeds is compared.
type twoWayControl struct {
	scheme, params, window string
	frame                  int
	payload, more          uint64
	seeds                  uint64
}

// twoWayCase has flows in a network, which are files, and the mean completion times of ns-3 in us.
type twoWayCase struct {
	network, flows string
	bufferMiB      int
	acks           string
	means          []float64 // of the controls, by their number
	most           float64   // how far ours may be from them
}

// of returns the experiment of a control, with as many bytes on the wire as theirs.
func (w twoWayCase) of(t *testing.T, c twoWayControl) *experiment.Experiment {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "ns3", name))
		qt.Assert(t, qt.IsNil(err))
		return string(text)
	}
	list, _, err := hpcc.ParseFlows(read(w.flows + ".flow.txt"))
	qt.Assert(t, qt.IsNil(err))
	lines := []string{fmt.Sprint(len(list))}
	for _, f := range list {
		packets := (f.SizeBytes + c.payload - 1) / c.payload
		lines = append(lines, fmt.Sprintf("%d %d %d 100 %d %d.%09d", f.From, f.To, f.Priority,
			max(int64(f.SizeBytes)-int64(packets*c.more), 1), f.StartNs/1e9, f.StartNs%1e9))
	}
	indent := func(text string) string {
		return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
	}
	return parse(t, fmt.Sprintf(twoWay, c.frame, c.scheme, c.params, w.bufferMiB, w.acks, c.window,
		indent(read(w.network+".topology.txt")), indent(strings.Join(lines, "\n"))))
}

// Where data meets ACKs, it matters in which class these are. With those of HPCC's simulator the
// mean completion times are its own, whether its switches queue ACKs with data, as run.py has it,
// or before them, with SwitchNode::AckHighPrio. All flows took the same paths there. The means of
// ns-3 are of one run, of four of DCQCN in the trees. These have one path between two hosts: four
// switches with four hosts each, whose links to a fifth are four times as fast.
func TestTwoWayTrafficIsThatOfNS3(t *testing.T) {
	window := ", window: bdp, scale_window: true"
	controls := []twoWayControl{
		{"dcqcn", "dcqcn: {set: hpcc}", "", 1051, 1003, 18, 4},
		{"timely", "timely: {set: hpcc}", "", 1051, 995, 10, 1},
		{"dctcp_rate", "", window, 1051, 1003, 18, 1},
		{"hpcc", "hpcc: {set: hpcc}", "", 1059, 1011, 18, 1},
	}
	const hadoop, permutation = "fattree-hadoop", "fattree-permutation"
	for _, test := range []twoWayCase{
		{"fattree", hadoop, 32, "data", []float64{72.4, 75.7, 52.6, 52.9}, 0.02},
		{"fattree", hadoop, 32, "control", []float64{60.3, 61.9, 48.9, 51.5}, 0.02},
		{"fattree", permutation, 32, "data", []float64{286.9, 319.0, 237.5, 262.6}, 0.02},
		{"fattree", permutation, 32, "control", []float64{299.1, 271.6, 233.3, 266.9}, 0.02},
		{"tree25", "tree25", 8, "data", []float64{116.6, 116.4, 100.9, 105.6}, 0.03},
		{"tree100", "tree100", 32, "data", []float64{42.6, 47.1, 37.5, 37.4}, 0.03},
	} {
		for i, c := range controls {
			t.Run(test.flows+"/"+test.acks+"/"+c.scheme, func(t *testing.T) {
				t.Parallel()
				e := test.of(t, c)
				var times []float64
				for seed := uint64(1); seed <= c.seeds; seed++ {
					seeded, err := e.With(experiment.Changes{Seed: &seed})
					qt.Assert(t, qt.IsNil(err))
					for _, flow := range simulate(t, seeded, c.scheme).Completions {
						qt.Assert(t, qt.IsNotNil(flow.FCTNs), qt.Commentf("%s", flow.Flow))
						times = append(times, float64(*flow.FCTNs)/1e3)
					}
				}
				apart := average(times)/test.means[i] - 1
				t.Logf("mean %.1f us, %+.2f%% apart", average(times), 100*apart)
				qt.Check(t, qt.IsTrue(math.Abs(apart) <= test.most), qt.Commentf("%+.4f", apart))
			})
		}
	}
}
