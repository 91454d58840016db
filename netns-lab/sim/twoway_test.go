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

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/hpcc"
)

// fatTree is a fat tree of 16 hosts, with the settings of HPCC's run.py.
const fatTree = `
name: fattree
engine: sim
topology: {file: topology.txt}
trace: {file: flow.txt}
frame: %dB
schemes: [%s]
%s
switch: {buffer: 32MiB, marking_by_rate: true, pfc: {dynamic: {alpha: 1/8, by_rate: true,
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

// fatTreeOf returns the experiment of flows, with as many bytes on the wire as theirs.
func fatTreeOf(t *testing.T, flows, acks string, c twoWayControl) *experiment.Experiment {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "ns3", name))
		qt.Assert(t, qt.IsNil(err))
		return string(text)
	}
	list, _, err := hpcc.ParseFlows(read(flows + ".flow.txt"))
	qt.Assert(t, qt.IsNil(err))
	lines := []string{fmt.Sprint(len(list))}
	for _, f := range list {
		packets := (f.SizeBytes + c.payload - 1) / c.payload
		lines = append(lines, fmt.Sprintf("%d %d %d 100 %d %d.%09d", f.From, f.To, f.Priority,
			f.SizeBytes-packets*c.more, f.StartNs/1e9, f.StartNs%1e9))
	}
	indent := func(text string) string {
		return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
	}
	return parse(t, fmt.Sprintf(fatTree, c.frame, c.scheme, c.params, acks, c.window,
		indent(read("fattree.topology.txt")), indent(strings.Join(lines, "\n"))))
}

// Where data meets ACKs, it matters in which class these are. With those of HPCC's simulator the
// mean completion times are its own, whether its switches queue ACKs with data, as run.py has it,
// or before them, with SwitchNode::AckHighPrio. All flows took the same paths there. The means of
// ns-3, in us, are of one run.
func TestTwoWayTrafficIsThatOfNS3(t *testing.T) {
	window := ", window: bdp, scale_window: true"
	controls := []twoWayControl{
		{"dcqcn", "dcqcn: {set: hpcc}", "", 1051, 1003, 18, 4},
		{"timely", "timely: {set: hpcc}", "", 1051, 995, 10, 1},
		{"dctcp_rate", "", window, 1051, 1003, 18, 1},
		{"hpcc", "hpcc: {set: hpcc}", "", 1059, 1011, 18, 1},
	}
	for _, test := range []struct {
		flows, acks string
		means       []float64
	}{
		{"fattree-hadoop", "data", []float64{72.4, 75.7, 52.6, 52.9}},
		{"fattree-hadoop", "control", []float64{60.3, 61.9, 48.9, 51.5}},
		{"fattree-permutation", "data", []float64{286.9, 319.0, 237.5, 262.6}},
		{"fattree-permutation", "control", []float64{299.1, 271.6, 233.3, 266.9}},
	} {
		for i, c := range controls {
			t.Run(test.flows+"/"+test.acks+"/"+c.scheme, func(t *testing.T) {
				t.Parallel()
				e := fatTreeOf(t, test.flows, test.acks, c)
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
				qt.Check(t, qt.IsTrue(math.Abs(apart) <= 0.02), qt.Commentf("%+.4f", apart))
			})
		}
	}
}
