// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// Fields of a hop wrap as those of HPCC's simulator, but not the queue. A sixth is counted.
func TestStamp(t *testing.T) {
	tel := &telemetry{}
	const scale = 4
	p := &port{rate: 100_000_000_000, bytes: 3200}
	tel.begin(7)
	p.counters.sentBytes = 1023
	tel.stamp(7, 5, p, scale)
	p.counters.sentBytes = 512<<20 + 1024
	tel.stamp(7, 1<<24+6, p, scale)
	p.bytes, p.counters.sentBytes = 1<<40, 0
	for range 4 {
		tel.stamp(7, 7, p, scale)
	}
	h := tel.headers[7]
	qt.Check(t, qt.Equals(h.hops, 6))
	qt.Check(t, qt.DeepEquals(h.hop[:3], []uint64{
		5 | 1<<24 | 10<<44, 6 | 2<<24 | 10<<44, 7 | (1<<17-1)<<44,
	}))
	qt.Check(t, qt.Equals(h.rateKbps, [maxHops]uint32{1e8, 1e8, 1e8, 1e8, 1e8}))

	// An ACK has that of the newest data packet of its flow.
	tel.arrived(7, 3)
	tel.echo(2, 3)
	qt.Check(t, qt.Equals(tel.headers[2], h))
	tel.begin(7) // the number is another packet's
	qt.Check(t, qt.Equals(tel.headers[7], intHeader{}))
	qt.Check(t, qt.Equals(tel.headers[2], h))
}

// pair is one flow over a switch, at 100 Gbit/s.
const pair = `
name: pair
engine: sim
topology: {kind: star, hosts: 1, rate: 100Gbps, delay: 1us}
frame: 1048B
switch: {buffer: 1MB, pfc: {off: true}}
schemes: [%s]
warmup: 0ms
duration: 2ms
sample: 100us
flows: [{name: F, from: H0, to: R0, start: 0ms}]
`

// A flow that is alone has 95% of the link, and data packets and ACKs are 42 bytes longer than
// those of others.
func TestAloneUnderHPCC(t *testing.T) {
	run := simulate(t, parse(t, fmt.Sprintf(pair, "hpcc")), "hpcc")
	lengths := map[string]uint64{"S0->R0": 1048 + 42, "S0->H0": 66 + 42}
	for _, p := range run.Ports {
		if want, ok := lengths[p.Name]; ok {
			qt.Check(t, qt.Equals(p.SentBytes/p.SentPackets, want), qt.Commentf("%s", p.Name))
			qt.Check(t, qt.IsTrue(p.QueueMaxBytes <= 2*want), qt.Commentf("%s", p.Name))
			delete(lengths, p.Name)
		}
	}
	qt.Check(t, qt.HasLen(lengths, 0))
	got := float64(run.Flows[0].ReceivedBytes) * 8 / 2e-3 / 100e9 * 1090 / (1048 - 66)
	qt.Check(t, qt.IsTrue(got > 0.94 && got < 0.96), qt.Commentf("%f", got))

	other := simulate(t, parse(t, fmt.Sprintf(pair, "pfc")), "pfc")
	for _, p := range other.Ports {
		if p.Name == "S0->R0" {
			qt.Check(t, qt.Equals(p.SentBytes/p.SentPackets, 1048))
		}
	}
}

// A flow has its rate times T in flight at most, unless the file says otherwise.
func TestWindowOfHPCC(t *testing.T) {
	for add, want := range map[string]uint64{
		"":                            4174 * 100 / 8, // 4 us, and 1090 bytes on 2 links
		"hpcc: {rtt: 10us}\n":         10_000 * 100 / 8,
		"transport: {window: 30KB}\n": 30_000,
		"hpcc: {rtt: 10us}\ntransport: {window: 30KB}\n":  30_000,
		"transport: {window: 30KB, scale_window: true}\n": 30_000,
	} {
		w := worldOf(t, parse(t, fmt.Sprintf(pair, "hpcc")+add), "hpcc")
		qt.Check(t, qt.Equals(w.transport.flows[0].flightBytes, want), qt.Commentf("%q", add))
		scales := !strings.Contains(add, "window: 30KB}")
		qt.Check(t, qt.Equals(w.transport.scaleFlight, scales), qt.Commentf("%q", add))
	}
	dcqcn := worldOf(t, parse(t, fmt.Sprintf(pair, "dcqcn")), "dcqcn")
	qt.Check(t, qt.Equals(dcqcn.transport.flows[0].flightBytes, 0))
}

// Five switches are the most that a packet has room for.
func TestLongPathsUnderHPCC(t *testing.T) {
	for bottlenecks, want := range map[int]string{
		4: "",
		5: `flow F crosses 6 switches, and hpcc's telemetry has room for 5: ` +
			`choose hosts that are nearer, or another scheme`,
	} {
		text := strings.NewReplacer("kind: star, hosts: 1",
			fmt.Sprintf("kind: parking-lot, bottlenecks: %d", bottlenecks),
		).Replace(fmt.Sprintf(pair, "hpcc"))
		_, err := tryWorld(t, parse(t, text), "hpcc")
		if want == "" {
			qt.Check(t, qt.IsNil(err))
			continue
		}
		qt.Check(t, qt.ErrorMatches(err, want))
		_, err = tryWorld(t, parse(t, strings.Replace(text, "[hpcc]", "[pfc]", 1)), "pfc")
		qt.Check(t, qt.IsNil(err))
	}
}
