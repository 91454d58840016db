// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// loadWindow is LDCP in the kernel. Its flow keeps its state from one batch to the next.
func loadWindow(t testing.TB) *ldcpObjects {
	t.Helper()
	objs := new(ldcpObjects)
	loadObjects(t, objs, loadLdcpObjects)
	return objs
}

func (o *ldcpObjects) window(t testing.TB, params ldcpLdcpParams, steps []ldcpLdcpStep) {
	t.Helper()
	args := ldcpLdcpArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, o.Window, o.LdcpSteps, &args, steps)
}

// ldcpPublished are the parameters of the published driver.
var ldcpPublished = ldcpLdcpParams{Alpha: q24One, Beta: q24One / 2, Gamma: q24One / 4, Eta: q24One / 2}

// ldcpDraft is the draft's window in real numbers: equations (1) and (2), what follows for cw < 1, and the two ways
// out of the fast start (sec. 2.2, 2.3, 3). What the draft leaves open is as docs/ldcp.md has it.
type ldcpDraft struct {
	alpha, beta, gamma, eta float64
	cw, iw, max             float64 // packets
	stable                  bool
}

func newLDCPDraft(p ldcpLdcpParams) ldcpDraft {
	return ldcpDraft{alpha: q24Float(p.Alpha), beta: q24Float(p.Beta), gamma: q24Float(p.Gamma), eta: q24Float(p.Eta)}
}

func (d *ldcpDraft) step(s ldcpLdcpStep) {
	acked := float64(s.Acked)
	switch {
	case s.Event == ldcpLdcpEventINIT:
		d.cw, d.iw, d.max, d.stable = float64(s.Iw), float64(s.Iw), 2*math.Max(float64(s.Iw), float64(s.Bdp)), false
	case s.Event == ldcpLdcpEventTIMEOUT:
		d.cw, d.stable = math.Min(d.cw, 1), true
	case s.Event == ldcpLdcpEventLOSS && d.stable:
		d.cw = math.Max(d.cw/2, d.gamma)
	case s.Event == ldcpLdcpEventLOSS: // transition 1
		d.cw, d.stable = math.Max(math.Min(acked, d.iw), 1), true
	case !d.stable: // transition 2, or none yet
		d.stable = acked >= d.iw
	default:
		d.ack(float64(min(s.Clean, math.MaxUint16)), float64(s.Marked), s.Limited) // no ACK covers more
	}
}

// ack takes the packets that were not marked first.
func (d *ldcpDraft) ack(clean, marked float64, limited bool) {
	switch {
	case clean == 0 || !limited:
	case d.cw >= 1:
		d.cw = math.Min(d.cw+clean*d.alpha/d.cw, d.max)
	default:
		d.cw = math.Min(d.cw+d.gamma, d.max)
	}
	switch {
	case marked == 0:
	case d.cw >= 1:
		d.cw = math.Max(d.cw-marked*d.beta, d.gamma)
	default:
		d.cw = math.Max(d.eta*d.cw, d.gamma)
	}
}

// check compares a step's outcome with the draft's, and goes on from it: so what is rounded does not add up.
func (d *ldcpDraft) check(s ldcpLdcpStep) error {
	const ulps = 1.5 // an increase is rounded down, a cut to nearest
	cw := float64(s.Flow.Cw) / q24One
	if math.Abs(cw-d.cw) > ulps*q24Ulp {
		return fmt.Errorf("cw is %.9f, want %.9f", cw, d.cw)
	}
	if stable := s.Flow.Stage != 0; stable != d.stable {
		return fmt.Errorf("in the stable stage %v, want %v", stable, d.stable)
	}
	if cw < d.gamma || cw > d.max {
		return fmt.Errorf("cw %g is outside of %g to %g", cw, d.gamma, d.max)
	}
	if want := max(uint32(cw), 1); s.Packets != want {
		return fmt.Errorf("%d packets, want %d of cw %g", s.Packets, want, cw)
	}
	gap := 0.
	if cw < 1 {
		gap = float64(s.RttNs) / cw
	}
	if math.Abs(float64(s.GapNs)-gap) > 1+gap*1e-15 {
		return fmt.Errorf("gap %d ns, want %g of RTT %d and cw %g", s.GapNs, gap, s.RttNs, cw)
	}
	d.cw = cw
	return nil
}

// checkLDCP runs steps, the first of which starts the flow, and compares every outcome with the draft.
func checkLDCP(t testing.TB, o *ldcpObjects, p ldcpLdcpParams, steps []ldcpLdcpStep) {
	t.Helper()
	o.window(t, p, steps)
	d := newLDCPDraft(p)
	for i, s := range steps {
		d.step(s)
		if err := d.check(s); err != nil {
			t.Fatalf("step %d: %v: %+v, params %+v", i, err, s, p)
		}
	}
}

func ldcpStart(iw, bdp uint32) ldcpLdcpStep {
	return ldcpLdcpStep{Event: ldcpLdcpEventINIT, Iw: iw, Bdp: bdp, RttNs: 1000}
}

// ldcpACK is one while the window limits the sender.
func ldcpACK(clean, marked, acked uint32) ldcpLdcpStep {
	return ldcpLdcpStep{Event: ldcpLdcpEventACK, Clean: clean, Marked: marked, Acked: acked, Limited: true, RttNs: 1000}
}

func ldcpLoss(acked uint32) ldcpLdcpStep {
	return ldcpLdcpStep{Event: ldcpLdcpEventLOSS, Acked: acked, RttNs: 1000}
}

func ldcpTimeout() ldcpLdcpStep { return ldcpLdcpStep{Event: ldcpLdcpEventTIMEOUT, RttNs: 1000} }

// Sequences worked out by hand, with the published parameters: 1, 1/2, 1/4, 1/2.
func TestLDCPByHand(t *testing.T) {
	o := loadWindow(t)

	idle := ldcpACK(1, 0, 9)
	idle.Limited = false
	idleMarked := ldcpACK(0, 1, 9)
	idleMarked.Limited = false
	for _, test := range []struct {
		name  string
		steps []ldcpLdcpStep
		want  []float64 // cw after each step
	}{
		{"fast start: no ACK changes cw", []ldcpLdcpStep{ldcpStart(4, 4), ldcpACK(1, 0, 1), ldcpACK(0, 2, 3)}, []float64{4, 4, 4}},
		{"IW acknowledged: cw is IW, and (1) from the next ACK on", []ldcpLdcpStep{ldcpStart(4, 4), ldcpACK(1, 0, 3), ldcpACK(0, 1, 4), ldcpACK(1, 0, 5), ldcpACK(0, 1, 6)}, []float64{4, 4, 4, 4.25, 3.75}},
		{"more than IW acknowledged", []ldcpLdcpStep{ldcpStart(4, 4), ldcpACK(2, 0, 5), ldcpACK(0, 1, 6)}, []float64{4, 4, 3.5}},
		{"loss in fast start: cw is what was acknowledged before it", []ldcpLdcpStep{ldcpStart(10, 10), ldcpACK(3, 0, 3), ldcpLoss(3), ldcpACK(3, 0, 6)}, []float64{10, 10, 3, 4}},
		{"nothing acknowledged before it: one packet", []ldcpLdcpStep{ldcpStart(10, 10), ldcpLoss(0), ldcpACK(1, 0, 1)}, []float64{10, 1, 2}},
		{"acknowledged beyond IW: IW", []ldcpLdcpStep{ldcpStart(10, 10), ldcpLoss(12)}, []float64{10, 10}},
		{"a second loss halves", []ldcpLdcpStep{ldcpStart(10, 10), ldcpLoss(8), ldcpLoss(9)}, []float64{10, 8, 4}},
		{"a loss below one packet halves, to gamma", []ldcpLdcpStep{ldcpStart(1, 1), ldcpLoss(0), ldcpLoss(0), ldcpLoss(0), ldcpLoss(0)}, []float64{1, 1, 0.5, 0.25, 0.25}},
		{"timeout in fast start: one packet, and the stable stage", []ldcpLdcpStep{ldcpStart(10, 10), ldcpTimeout(), ldcpACK(1, 0, 1)}, []float64{10, 1, 2}},
		{"timeout below one packet changes nothing", []ldcpLdcpStep{ldcpStart(1, 1), ldcpACK(0, 1, 1), ldcpACK(0, 1, 2), ldcpTimeout()}, []float64{1, 1, 0.5, 0.5}},
		{"(2): n alpha / cw, n beta", []ldcpLdcpStep{ldcpStart(8, 8), ldcpACK(8, 0, 8), ldcpACK(4, 0, 12), ldcpACK(0, 3, 15)}, []float64{8, 8, 8.5, 7}},
		{"both in one ACK: what was not marked first", []ldcpLdcpStep{ldcpStart(8, 8), ldcpACK(8, 0, 8), ldcpACK(4, 2, 14)}, []float64{8, 8, 7.5}},
		{"below one: half a mark, gamma without, gamma is least", []ldcpLdcpStep{
			ldcpStart(1, 1), ldcpACK(1, 0, 1), ldcpACK(0, 1, 2), ldcpACK(0, 1, 3), ldcpACK(0, 1, 4), ldcpACK(5, 0, 9), ldcpACK(1, 0, 10), ldcpACK(1, 0, 11), ldcpACK(1, 0, 12),
		}, []float64{1, 1, 0.5, 0.25, 0.25, 0.5, 0.75, 1, 2}},
		{"below one, many marks in an ACK count as one", []ldcpLdcpStep{ldcpStart(1, 1), ldcpACK(1, 0, 1), ldcpACK(0, 1, 2), ldcpACK(1, 0, 3), ldcpACK(0, 9, 12)}, []float64{1, 1, 0.5, 0.75, 0.375}},
		{"from above one to gamma at once", []ldcpLdcpStep{ldcpStart(3, 3), ldcpACK(3, 0, 3), ldcpACK(0, 100, 103)}, []float64{3, 3, 0.25}},
		{"no growth unless the window limits; cuts all the same", []ldcpLdcpStep{ldcpStart(4, 4), ldcpACK(4, 0, 4), idle, idleMarked}, []float64{4, 4, 4, 3.5}},
		{"cw grows to twice IW", []ldcpLdcpStep{ldcpStart(4, 3), ldcpACK(4, 0, 4), ldcpACK(15, 0, 19), ldcpACK(15, 0, 34)}, []float64{4, 4, 7.75, 8}},
		{"or to twice the BDP", []ldcpLdcpStep{ldcpStart(2, 4), ldcpACK(2, 0, 2), ldcpACK(60000, 0, 19)}, []float64{2, 2, 8}},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkLDCP(t, o, ldcpPublished, test.steps)
			var got []float64
			for _, s := range test.steps {
				got = append(got, float64(s.Flow.Cw)/q24One)
			}
			qt.Assert(t, qt.DeepEquals(got, test.want))
		})
	}
}

// A packet every RTT / cw below one; the window says when above.
func TestLDCPGap(t *testing.T) {
	o := loadWindow(t)

	steps := []ldcpLdcpStep{ldcpStart(1, 1), ldcpACK(1, 0, 1), ldcpACK(0, 1, 2), ldcpACK(0, 1, 3)}
	for i := range steps {
		steps[i].RttNs = 100_000
	}
	longest := ldcpACK(0, 1, 4)
	longest.RttNs = 1<<40 - 1
	steps = append(steps, longest)
	checkLDCP(t, o, ldcpPublished, steps)
	for i, want := range []uint64{0, 0, 200_000, 400_000, 4 * (1<<40 - 1)} {
		qt.Check(t, qt.Equals(steps[i].GapNs, want))
	}
}

var _ = oracle(TestLDCPRandomEvents, "ldcp")

// Whatever comes, with whatever parameters, cw is the draft's.
func TestLDCPRandomEvents(t *testing.T) {
	o := loadWindow(t)

	const sequences, length = 150, 2000
	var below, exits, capped int
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 60))
		p := randomLDCPParams(r)
		steps := randomLDCPSteps(r, length)
		checkLDCP(t, o, p, steps)
		for i, s := range steps[1:] {
			if s.Flow.Cw < q24One {
				below++
			}
			if s.Flow.Stage != steps[i].Flow.Stage {
				exits++
			}
			if s.Flow.Cw == uint64(s.Flow.Max)*q24One {
				capped++
			}
		}
	}
	for what, n := range map[string]int{"below one": below, "exits": exits, "at the cap": capped} {
		qt.Check(t, qt.IsTrue(n > 10*sequences), qt.Commentf("%s: %d", what, n))
	}
}

// randomLDCPParams are the published ones, or anything that the loader lets pass.
func randomLDCPParams(r *rand.Rand) ldcpLdcpParams {
	if r.IntN(3) == 0 {
		return ldcpPublished
	}
	share := func() uint32 { return pick(r, 1, q24One, uint32(logUniform(r, 1, q24One)), uint32(r.IntN(q24One)+1)) }
	return ldcpLdcpParams{Alpha: share(), Beta: share(), Gamma: share(), Eta: min(share(), q24One-1)}
}

func randomLDCPSteps(r *rand.Rand, n int) []ldcpLdcpStep {
	const mostPackets = 1 << 20
	start := func() ldcpLdcpStep {
		return ldcpStart(uint32(logUniform(r, 1, mostPackets)), uint32(logUniform(r, 1, mostPackets)))
	}
	some := func() uint32 { return uint32(logUniform(r, 1, pick[uint64](r, 2, 50, math.MaxUint32))) }
	steps := []ldcpLdcpStep{start()}
	acked, share := uint32(0), 0.
	for len(steps) < n {
		if r.IntN(50) == 0 {
			share = pick(r, 0, 0.01, 0.5, 1)
		}
		var s ldcpLdcpStep
		switch r.IntN(200) {
		case 0, 1, 2, 3:
			s, acked = start(), 0
		case 4, 5:
			s = ldcpLoss(acked)
		case 6:
			s = ldcpTimeout()
		case 7:
			s = ldcpACK(0, 0, acked) // of nothing new
		case 8, 9:
			s = ldcpACK(some(), some(), acked)
		default:
			packets := some()
			acked += min(packets, math.MaxUint32-acked)
			s = ldcpACK(packets, 0, acked)
			if r.Float64() < share {
				s = ldcpACK(0, packets, acked)
			}
		}
		s.Limited = r.IntN(10) > 0
		s.RttNs = logUniform(r, 1, 1<<40-1)
		steps = append(steps, s)
	}
	return steps
}

// A flow alone, each packet of which is marked with a fixed probability p: (1) balances where alpha (1 - p) / cw is
// beta p, so the time average of cw is 2 (1 - p) / p for alpha 1 and beta 1/2. An ACK comes every RTT / cw.
func TestLDCPEquilibrium(t *testing.T) {
	o := loadWindow(t)

	for _, p := range []float64{0.005, 0.01, 0.05, 0.1, 0.2, 0.3} {
		t.Run(fmt.Sprint("p ", p), func(t *testing.T) {
			want := 2 * (1 - p) / p
			got := timeAverage(t, o, randomMarks(1, p), uint32(want))
			t.Logf("%.3f packets, 2 (1 - p) / p is %.3f", got, want)
			near(t, got, want, 0.1*want, "time average of cw")
		})
	}
}

// As above, with marks that come as regularly as their share lets them: no run of marks takes cw below one packet. With
// p 1/2 cw is 2 and 5/2 in turn, the harmonic mean of which is 20/9: 1/9 above (1).
func TestLDCPEquilibriumRegular(t *testing.T) {
	o := loadWindow(t)

	wants := map[float64]float64{0.5: 20. / 9}
	for _, p := range []float64{0.005, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4} {
		wants[p] = 2 * (1 - p) / p
	}
	for p, want := range wants {
		t.Run(fmt.Sprint("p ", p), func(t *testing.T) {
			got := timeAverage(t, o, regularMarks(p), uint32(want))
			t.Logf("%.3f packets, want %.3f", got, want)
			near(t, got, want, 0.06*want, "time average of cw")
		})
	}
}

// Where every second packet is marked at random, cw often gets below one, and there it balances at gamma (1 - p) = (1 - eta) p cw,
// half a packet: so the time average is far below the 2 packets of (1). It is the draft's in real numbers.
func TestLDCPEquilibriumBelowOne(t *testing.T) {
	o := loadWindow(t)

	const packets = 1 << 20
	for _, p := range []float64{0.4, 0.5, 0.6} {
		t.Run(fmt.Sprint("p ", p), func(t *testing.T) {
			marked := randomMarks(2, p)
			d := newLDCPDraft(ldcpPublished)
			d.step(ldcpStart(1, 1<<19))
			d.step(ldcpACK(1, 0, 1))
			roundTrips := 0.
			for range packets {
				d.step(markedIf(marked()))
				roundTrips += 1 / d.cw
			}
			want := packets / roundTrips
			got := timeAverage(t, o, randomMarks(1, p), 1)
			t.Logf("%.3f packets, %.3f in real numbers, 2 (1 - p) / p is %.3f", got, want, 2*(1-p)/p)
			near(t, got, want, 0.03*want, "time average of cw")
			qt.Check(t, qt.IsTrue(got < 0.8*2*(1-p)/p))
		})
	}
}

// timeAverage is of cw in the kernel, in packets, for a flow that begins at iw.
func timeAverage(t testing.TB, o *ldcpObjects, marked func() bool, iw uint32) float64 {
	t.Helper()
	const batches = 8
	o.window(t, ldcpPublished, []ldcpLdcpStep{ldcpStart(iw, 1<<19), ldcpACK(1, 0, iw)})
	steps := make([]ldcpLdcpStep, len(batchKeys))
	packets, roundTrips := 0., 0.
	for range batches {
		for i := range steps {
			steps[i] = markedIf(marked())
		}
		o.window(t, ldcpPublished, steps)
		for _, s := range steps {
			packets++
			roundTrips += q24One / float64(s.Flow.Cw)
		}
	}
	return packets / roundTrips
}

// randomMarks says of each packet whether it is marked: with probability p, on its own.
func randomMarks(seed uint64, p float64) func() bool {
	r := rand.New(rand.NewPCG(seed, 61))
	return func() bool { return r.Float64() < p }
}

// regularMarks says so for a share p of the packets, evenly spaced.
func regularMarks(p float64) func() bool {
	due := 0.
	return func() bool {
		due += p
		if due < 1 {
			return false
		}
		due--
		return true
	}
}

// markedIf is the ACK of a packet that is marked, or not.
func markedIf(marked bool) ldcpLdcpStep {
	if marked {
		return ldcpACK(0, 1, 1)
	}
	return ldcpACK(1, 0, 1)
}

func TestLDCPBDP(t *testing.T) {
	o := loadWindow(t)

	const most = 1 << 20
	steps := []ldcpBdpStep{
		{RateBps: 10e9, RttNs: 100_000, PacketBytes: 1514}, // 125000 bytes
		{RateBps: 10e9, RttNs: 100_000, PacketBytes: 1250},
		{RateBps: 100e6, RttNs: 10_000_000, PacketBytes: 1500},
		{RateBps: 1, RttNs: 1000, PacketBytes: 1500},
		{RateBps: 8, RttNs: 1e9, PacketBytes: 1}, // a byte
		{RateBps: 800e9, RttNs: 1e9, PacketBytes: 64},
		{RateBps: 800e9, RttNs: 1e9, PacketBytes: 100_000},
	}
	wants := []uint32{83, 100, 84, 1, 1, most, 1_000_000}
	hand := len(steps)
	r := rand.New(rand.NewPCG(1, 62))
	for range 20_000 {
		steps = append(steps, ldcpBdpStep{
			RateBps: logUniform(r, 1, maxLineBps), RttNs: logUniform(r, 1000, 1e9), PacketBytes: uint32(logUniform(r, 54, 1<<16)),
		})
	}
	args := ldcpBdpArgs{Steps: uint32(len(steps))}
	runBatch(t, o.Bdp, o.BdpSteps, &args, steps)
	for i, s := range steps[:hand] {
		qt.Check(t, qt.Equals(s.Packets, wants[i]), qt.Commentf("%+v", s))
	}
	for _, s := range steps {
		// the rate is rounded down to whole bytes, and twice the product is
		const rounded = 3
		bytes := float64(s.RateBps) * float64(s.RttNs) / 8e9
		limit := func(bytes float64) float64 {
			return math.Min(math.Max(math.Ceil(bytes/float64(s.PacketBytes)), 1), most)
		}
		if got := float64(s.Packets); got < limit(bytes-rounded) || got > limit(bytes+1e-6) {
			t.Fatalf("%+v: want %g to %g", s, limit(bytes-rounded), limit(bytes))
		}
	}
}
