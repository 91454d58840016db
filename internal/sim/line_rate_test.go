// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
)

// idle has a host H4 whose link has a rate of its own, and which has no traffic.
const idle = `
name: idle
engine: sim
topology: {file: topology.txt}
trace: {file: flow.txt}
schemes: [%s]
frame: 1048B
switch: {marking_by_rate: true, pfc: {dynamic: {alpha: 0.125, by_rate: true}}}
%s
warmup: 0ms
duration: 8ms
files:
  topology.txt: |
    6 1 5
    5
    0 5 10Gbps 0.005ms 0
    1 5 10Gbps 0.005ms 0
    2 5 10Gbps 0.005ms 0
    3 5 10Gbps 0.005ms 0
    4 5 %s 0.005ms 0
  flow.txt: |
    3
    0 3 3 100 2000000 2.0
    1 3 3 100 2000000 2.0
    2 3 3 100 2000000 2.0001
`

// The rate of a host without traffic changes nothing of any scheme, not even by what parameters,
// thresholds and windows it has by default.
func TestRateOfAnIdleHost(t *testing.T) {
	for _, name := range scheme.Builtin().Names() {
		adds := []string{"", "workload: {cdf: fb-hadoop, load: 0.2, from: H0..H2, to: H3}"}
		if name != "hpcc" {
			adds = append(adds, "transport: {window: bdp, scale_window: true}")
		}
		for _, add := range adds {
			t.Run(name+"/"+add, func(t *testing.T) {
				want := simulateIdle(t, name, add, "10Gbps")
				for _, rate := range []string{"1Gbps", "100Gbps"} {
					// the manifest has the hash of the file
					sameFiles(t, want, simulateIdle(t, name, add, rate), "experiment.yaml",
						"manifest.json")
				}
			})
		}
	}
}

// simulateIdle runs a scheme with an idle host whose link has a rate, and returns the folder of its
// results. What must differ, the rate of that link, is not in them.
func simulateIdle(t *testing.T, name, add, rate string) string {
	t.Helper()
	run := simulate(t, parse(t, fmt.Sprintf(idle, name, add, rate)), name)
	for i, p := range run.Ports {
		if p.Name == "H4->S5" || p.Name == "S5->H4" {
			run.Ports[i].RateBps = 0
		}
	}
	dir := t.TempDir()
	qt.Assert(t, qt.IsNil(run.Write(dir)))
	return dir
}

// A flow begins at the rate of its own host's link, and its control's values are of that rate.
func TestEachHostsOwnLineRate(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(idle, "dcqcn", "", "100Gbps"),
		"2 3 3 100 2000000", "4 3 3 100 2000000", 1)
	e := parse(t, text)
	qt.Check(t, qt.Equals(e.HostRate("H0"), 10e9))
	qt.Check(t, qt.Equals(e.HostRate("H4"), 100e9))
	qt.Check(t, qt.Equals(e.Topology.Rate, 100e9)) // that of the fastest with traffic
	w := worldOf(t, e, "dcqcn")
	for i, rate := range []uint64{10e9, 10e9, 100e9} {
		f := &w.transport.flows[i]
		f.nextAt = w.now
		qt.Check(t, qt.Equals(uint64(f.spec.InitialRate), rate))
		qt.Check(t, qt.Equals(f.limitRate, rate))
		qt.Assert(t, qt.IsNil(w.transport.control.establish(w.now, f, f.mss, true, rate)))
		qt.Check(t, qt.Equals(w.transport.control.rateBps(f), rate))
		// no rule of it may raise the rate beyond its link
		for range 1000 {
			f.una++
			f.nxt, f.delivered, f.segments = f.una+10, f.una, f.una+10
			w.transport.control.ack(w.now+int64(f.una)*100_000, f, 1, 10, 10_000)
		}
		qt.Check(t, qt.IsTrue(w.transport.control.rateBps(f) <= rate))
	}
}
