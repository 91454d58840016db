// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

func parse(t *testing.T, text string) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("test.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	return e
}

func run(t *testing.T, e *experiment.Experiment, scheme string) *result.Run {
	t.Helper()
	r, err := Run(context.Background(), e, scheme, func(float64) {})
	qt.Assert(t, qt.IsNil(err))
	return r
}

// dumbbell is an experiment with flows of n hosts; more is added to the file.
func dumbbell(n int, rate, delay, duration, flow, more string) string {
	return fmt.Sprintf(`
name: test
topology: {kind: dumbbell, senders: %[1]d, rate: %[2]s, delay: %[3]s}
schemes: [pcn]
warmup: 0ms
duration: %[4]s
sample: 10us
switch: {buffer: 32MB, pfc: {xoff: 16MB}}
flows: [{name: F, from: A0..A%[5]d, to: B0..B%[5]d, start: 0ms%[6]s}]
expect: [{what: used, metric: utilisation, ports: [S0->S1], min: 10%%}]
%[7]s
`, n, rate, delay, duration, n-1, flow, more)
}

// queue returns the queue of S0->S1 at the starts of bins from a time on, in bytes.
func queue(r *result.Run, fromNs int64) []float64 {
	var q []float64
	for _, s := range r.Series {
		if s.Kind == result.KindPort && s.Name == "S0->S1" && s.TimeNs >= fromNs {
			q = append(q, float64(s.QueueBytes))
		}
	}
	return q
}

// rates returns the mean rate of each flow from a time on, in bit/s.
func rates(r *result.Run, fromNs int64) map[string]float64 {
	sum, n := map[string]float64{}, map[string]float64{}
	for _, s := range r.Series {
		if s.Kind == result.KindFlow && s.TimeNs >= fromNs {
			sum[s.Name] += float64(s.RateBps)
			n[s.Name]++
		}
	}
	for name := range sum {
		sum[name] /= n[name]
	}
	return sum
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// within fails if a value is not that close to what is wanted, as a share of it.
func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s is %g, want %g within %g%%", what, got, want, share*100)
	}
}

// Fluid is conserved, arrives one path later and is served at the link's rate: a burst alone takes
// as long as arithmetic says.
func TestBurst(t *testing.T) {
	e := parse(t, `
name: test
topology: {kind: star, hosts: 3, rate: 10Gbps, delay: 5us}
schemes: [pfc]
warmup: 0ms
duration: 3ms
sample: 100us
bursts: [{name: B, from: [H0, H1], to: R0, at: 1ms, size: 500KB}]
expect: [{what: sent, metric: port_rate, ports: [S0->R0], min: 1kbps}]
`)
	r := run(t, e, "pfc")
	m, err := newModel(e, "pfc")
	qt.Assert(t, qt.IsNil(err))
	bytes := m.wire(500e3, udpHeader)
	for _, f := range r.Flows {
		qt.Check(t, qt.Equals(f.ReceivedBytes, f.SentBytes), qt.Commentf(f.Name))
		// two bursts share a link of 1.25 bytes/ns; a packet waits at the host and at the switch
		want := 2*bytes/1.25 + 2*(5000+800)
		within(t, f.Name+"'s time", float64(*f.EndNs-f.StartNs), want, 0.01)
	}
	for _, p := range r.Ports {
		if p.Name == "S0->R0" { // half of what arrives at twice the rate waits
			within(t, "the longest queue", float64(p.QueueMaxBytes), bytes, 0.001)
		}
	}
}

// PAUSE keeps what a switch holds of each neighbour's fluid at XOFF, and nothing is lost.
func TestPause(t *testing.T) {
	e := parse(t, `
name: test
topology: {kind: star, hosts: 2, rate: 10Gbps, delay: 2us}
schemes: [pfc]
warmup: 0ms
duration: 5ms
switch: {pfc: {xoff: 100KB, xon: 98KB}}
flows: [{name: F, from: H0..H1, to: R0, start: 0ms}]
expect: [{what: sent, metric: port_rate, ports: [S0->R0], min: 1kbps}]
`)
	r := run(t, e, "pfc")
	qt.Check(t, qt.HasLen(r.Conservation(), 0))
	qt.Check(t, qt.IsTrue(len(r.PFC) > 10))
	for _, p := range r.Ports {
		if p.Name == "S0->R0" {
			within(t, "the longest queue", float64(p.QueueMaxBytes), 200e3, 0.2)
			within(t, "what left", float64(p.SentBytes), 1.25e9*5e-3, 0.01)
		}
	}
}

// What has no model is refused, and the message says what to do.
func TestRefused(t *testing.T) {
	const star = "name: x\ntopology: {kind: star}\nschemes: [dcqcn]\nduration: 1ms\n" +
		"flows: [{name: F, from: H0, to: R0}]\n"
	for _, c := range []struct{ text, scheme, want string }{
		{"name: x\ntopology: {kind: leaf-spine}\nschemes: [pcn]\nduration: 1ms\n" +
			"flows: [{name: F, from: H0, to: H2}]\n", "pcn",
			".*topology leaf-spine may have several paths.* run it with `--engine sim`"},
		{dumbbell(1, "10Gbps", "2us", "1ms", "", ""), "ibcc",
			".*scheme ibcc has no fluid model: want one of .*`--engine sim`"},
		{dumbbell(1, "10Gbps", "2us", "1ms", "", ""), "dctcp_rate",
			".*scheme dctcp_rate has no fluid model: want one of .*`--engine sim`"},
		{dumbbell(1, "10Gbps", "2us", "1ms", "", ""), "dcqcn+tcd", ".*dcqcn\\+tcd has no fluid.*"},
		{dumbbell(1, "10Gbps", "2us", "1ms", "", ""), "cubic", ".*Linux's own.*--engine kernel.*"},
		{dumbbell(1, "10Gbps", "2us", "1ms", "", "pcn: {feedback: ack}"), "pcn",
			".*pcn.feedback ack has no fluid model: want cnp.*"},
		{"name: x\ntopology: {kind: star}\nschemes: [pcn]\nduration: 1ms\n" +
			"switch: {detectors: true}\nflows: [{name: F, from: H0, to: R0}]\n", "pcn",
			".*switch.detectors are about packets.*"},
		{"name: x\ntopology: {kind: star}\nschemes: [pcn]\nduration: 1ms\n" +
			"flows: [{name: F, from: H0, to: R0}, {name: G, from: H1, to: R0, priority: 1}]\n",
			"pcn", ".*several priorities.*"},
		{"name: x\ntopology: {kind: star}\nschemes: [pcn]\nduration: 1ms\n" +
			"switch: {flow_control: cbfc}\nflows: [{name: F, from: H0, to: R0}]\n",
			"pcn", ".*cbfc has no fluid model.*"},
		{star + "transport: {acks: data}\n", "pcn",
			".*transport.acks and transport.cnp have no fluid model: remove them, or .*"},
		{star + "switch: {marking_by_rate: true}\n", "dcqcn",
			".*marking_by_rate has no fluid model: remove it, or run it with `--engine sim`"},
		{star + "switch: {pfc: {dynamic: {alpha: 1, by_rate: true}}}\n", "dcqcn",
			".*dynamic.by_rate has no fluid model.*"},
		{star + "timely: {set: hpcc}\n", "timely", ".*timely.per_rtt has no fluid model.*"},
		{star + "engine: sim\ntransport: {window: bdp}\n", "dcqcn",
			".*engine fluid has no transport.window.*"},
	} {
		_, err := Run(context.Background(), parse(t, c.text), c.scheme, func(float64) {})
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
}

// A run gives the same bytes again.
func TestReproducible(t *testing.T) {
	e := parse(t, dumbbell(3, "10Gbps", "2us", "2ms", "", ""))
	qt.Check(t, qt.CmpEquals(run(t, e, "dcqcn"), run(t, e, "dcqcn"),
		cmpopts.IgnoreUnexported(result.Run{})))
}

// A run ends when its context does.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := parse(t, dumbbell(1, "10Gbps", "2us", "2ms", "", ""))
	_, err := Run(ctx, e, "pcn", func(float64) {})
	qt.Check(t, qt.ErrorIs(err, context.Canceled))
}

// second is 1 s of 100 flows of 50 hosts at one link.
func second(scheme string) (*experiment.Experiment, error) {
	return experiment.Parse("second.yaml", []byte(`
name: second
topology: {kind: star, hosts: 50, rate: 40Gbps, delay: 5us}
schemes: [`+scheme+`]
warmup: 0ms
duration: 1s
sample: 1ms
switch: {buffer: 64MB, pfc: {xoff: 512KB}}
flows: [{name: F, from: H0..H49, to: R0, count: 2, start: 0ms}]
expect: [{what: used, metric: utilisation, ports: [S0->R0], min: 10%}]
`))
}
