// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/vm/vmtest"
)

// uncontended is an experiment whose flows never meet, so that arithmetic says how long each takes.
type uncontended struct {
	name     string
	topology string
	flows    string // YAML, one a line
	dilation uint
}

// inTurn is flows of all sizes from one host to another, one after the other.
const inTurn = `
  - {name: f1, from: H0, to: R0, start: 0us, size: 1KB}
  - {name: f2, from: H0, to: R0, start: 150us, size: 9.34KB}
  - {name: f3, from: H0, to: R0, start: 300us, size: 64KB}
  - {name: f4, from: H0, to: R0, start: 500us, size: 1MB}`

// withinLeaves is a hundred flows at once, of which no two share a link: from one half of a leaf's
// hosts to the other half.
func withinLeaves() string {
	var b strings.Builder
	for i := range 100 {
		leaf, host := i/25, i%25
		fmt.Fprintf(&b, "\n  - {name: f%d, from: H%d, to: H%d, start: 0us, size: 16KB}", i,
			50*leaf+host, 50*leaf+host+25)
	}
	return b.String()
}

// disjoint is so many flows at once, each between hosts of its own.
func disjoint(flows int, size string) string {
	var b strings.Builder
	for i := range flows {
		fmt.Fprintf(&b, "\n  - {name: f%d, from: H%d, to: H%d, start: 0us, size: %s}", i, i,
			i+flows, size)
	}
	return b.String()
}

var uncontendedFlows = []uncontended{
	{"1 switch, 10 Gbit/s", "{kind: star, hosts: 1, rate: 10Gbps, delay: 5us}", inTurn, 10},
	{"1 switch, the shortest links", "{kind: star, hosts: 1, rate: 40Gbps, delay: 500ns}", inTurn,
		14},
	{"2 switches, 40 Gbit/s",
		"{kind: dumbbell, senders: 1, rate: 40Gbps, delay: 2us}", strings.NewReplacer(
			"H0", "A0", "R0", "B0").Replace(inTurn), 12},
	{"3 switches, 100 Gbit/s",
		"{kind: parking-lot, bottlenecks: 2, rate: 100Gbps, delay: 1us}", inTurn, 13},
	{"5 switches, 400 Gbit/s",
		"{kind: parking-lot, bottlenecks: 4, rate: 400Gbps, delay: 2us}", inTurn, 14},
	{"6 switches, 200 Gbit/s, a slower way",
		"{kind: parking-lot, bottlenecks: 5, rate: 200Gbps, delay: 1us, " +
			"bottleneck: {rate: 100Gbps, delay: 4us}}", inTurn, 13},
	{"19 at once, 40 Gbit/s", "{kind: star, hosts: 38, rate: 40Gbps, delay: 6us}",
		disjoint(19, "64KB"), 13},
	{"100 at once, 40 Gbit/s",
		"{kind: leaf-spine, leaves: 4, spines: 1, hosts: 50, rate: 40Gbps, delay: 6us}",
		withinLeaves(), 15},
}

func (u uncontended) yaml() string {
	return fmt.Sprintf(`
name: oracle
topology: %s
schemes: [pfc]
warmup: 500us
duration: 1500us
dilation: %d
flows:%s
`, u.topology, u.dilation, u.flows)
}

// run runs it on this kernel.
func (u uncontended) run(t *testing.T) (*plan, *result.Run) {
	t.Helper()
	e := parse(t, u.yaml())
	p, err := newPlan(e)
	qt.Assert(t, qt.IsNil(err))
	run, err := Run(context.Background(), e, "pfc", nil)
	qt.Assert(t, qt.IsNil(err))
	return p, run
}

// completionNs is the oracle: packet by packet, and link by link, store and forward, without
// anybody else; and the way of the last packet's ACK back.
func completionNs(p *plan, f experiment.Flow) (ns, packetNs float64) {
	const header = 66 // Ethernet, IPv4, TCP with timestamps
	path := p.paths.Path(p.host(f.From), p.host(f.To))
	free := make([]float64, len(path)) // when each link is free
	payload := int(p.exp.Frame) - header
	for left := int(f.Size); left > 0; left -= payload {
		bits, at := float64(8*(min(left, payload)+header)), 0.0
		for i, l := range path {
			free[i] = max(free[i], at) + bits*1e9/float64(l.RateBps)
			at = free[i] + float64(l.DelayNs)
		}
		ns = at
	}
	for _, l := range path {
		ns += header*8e9/float64(l.RateBps) + float64(l.DelayNs)
		packetNs = max(packetNs, float64(p.exp.Frame)*8e9/float64(l.RateBps))
	}
	return ns, packetNs
}

// TestUncontendedFlows: completion times are those of arithmetic. In exact time that is to the ns,
// which each link rounds: a flow of 1 MB over 6 links takes 877,452 ns in place of 877,454. Else it
// is to 3%, or the time of a packet.
func TestUncontendedFlows(t *testing.T) {
	for _, u := range uncontendedFlows {
		t.Run(u.name, func(t *testing.T) {
			if virtualTime(t) {
				u.dilation = 0
			}
			p, run := u.run(t)
			m := run.Manifest
			qt.Check(t, qt.Equals(m.Verdict, result.Valid), qt.Commentf("%s", m.Reasons))
			qt.Check(t, qt.Equals(m.HostLateness.Starts.Count, uint64(len(p.exp.Flows))))
			qt.Check(t, qt.IsTrue(m.HostLateness.ACKs.Count >= uint64(len(p.exp.Flows))))
			qt.Assert(t, qt.HasLen(run.Completions, len(p.exp.Flows)))
			worst := 0.0
			for i, f := range p.exp.Flows {
				c := run.Completions[i]
				qt.Assert(t, qt.Equals(c.Flow, f.Name))
				qt.Assert(t, qt.IsNotNil(c.FCTNs), qt.Commentf("flow %s has not ended", f.Name))
				want, packetNs := completionNs(p, f)
				late := float64(*c.FCTNs) - want
				worst = max(worst, late/want)
				early, bound := 1.0, max(0.03*want, packetNs)
				if u.dilation == 0 {
					early, bound = float64(2*len(p.paths.Path(p.host(f.From), p.host(f.To)))), 1
				}
				qt.Check(t, qt.IsTrue(late >= -early && late <= bound),
					qt.Commentf("flow %s of %s takes %d ns, want %.0f", f.Name, f.Size, *c.FCTNs,
						want))
			}
			t.Logf("%.1f%% too slow at most; %+v", 100*worst, m.HostLateness)
		})
	}
}

// TestStartAfterALongWait: a program of low priority sleeps well beyond its time, if it is let.
// Here that would be 10 us.
func TestStartAfterALongWait(t *testing.T) {
	u := uncontended{topology: "{kind: star, hosts: 1, rate: 40Gbps, delay: 5us}",
		flows: "\n  - {name: f, from: H0, to: R0, start: 1400us, size: 16KB}", dilation: 10}
	_, run := u.run(t)
	starts := run.Manifest.HostLateness.Starts
	qt.Check(t, qt.Equals(starts.Count, 1))
	qt.Check(t, qt.IsTrue(starts.MaxNs < 500), qt.Commentf("%d ns", starts.MaxNs))
}

// TestWindowsAreOnTime: an ACK may let several packets go, as in slow start, and when it covers
// several. What waited for it is not late.
func TestWindowsAreOnTime(t *testing.T) {
	for _, scheme := range []string{
		"reno", // grows from 10 packets
		"ldcp\nldcp: {ack_every: 2}",
	} {
		name, set, _ := strings.Cut(scheme, "\n")
		t.Run(name, func(t *testing.T) {
			e := parse(t, fmt.Sprintf(`
name: windows
topology: {kind: star, hosts: 1, rate: 40Gbps, delay: 5us}
schemes: [%s]
warmup: 0us
duration: 500us
dilation: 12
%s
flows:
  - {name: f, from: H0, to: R0, start: 0us}
`, name, set))
			run, err := Run(context.Background(), e, name, nil)
			qt.Assert(t, qt.IsNil(err))
			data := run.Manifest.HostLateness.Data
			qt.Check(t, qt.IsTrue(data.Count >= 5), qt.Commentf("%+v", data))
			qt.Check(t, qt.IsTrue(data.MaxNs < 1000), qt.Commentf("%+v", data))
		})
	}
}

// TestSlowHostsAreInvalid: with too little time for the hosts' work, completion times are wrong.
// The ports are on time, so nobody but the hosts can tell.
func TestSlowHostsAreInvalid(t *testing.T) {
	vmtest.NeedsDebian(t)
	u := uncontended{topology: "{kind: star, hosts: 38, rate: 40Gbps, delay: 6us}",
		flows: disjoint(19, "64KB"), dilation: 10}
	p, run := u.run(t)
	want, _ := completionNs(p, p.exp.Flows[0])
	worst := int64(0)
	for _, c := range run.Completions {
		worst = max(worst, *c.FCTNs)
	}
	qt.Check(t, qt.IsTrue(float64(worst) > 1.1*want),
		qt.Commentf("%d ns, ideally %.0f", worst, want))
	m := run.Manifest
	qt.Check(t, qt.IsTrue(float64(m.LatenessP99Ns) < result.LateShare*float64(m.BaseRTTNs)))
	qt.Check(t, qt.Equals(m.Verdict, result.Invalid))
	qt.Check(t, qt.Matches(strings.Join(m.Reasons, "\n"),
		`(?s).*99% of flows sent their first packet up to \d+ ns late, over 5% of the base RTT `+
			"\\(1200 ns\\): raise `dilation`.*"))
}
