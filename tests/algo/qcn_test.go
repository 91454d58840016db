// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

const (
	qcnFbMax = 63 // 6 bits
	qcnWOne  = 256
)

// The values of 802.1Qau's MIB for 10 Gbit/s; hyper increase after 500 packets of 1500 bytes (slide 27).
func standardQCN() rateQcnRpParams {
	return rateQcnRpParams{
		Recovery: rateRecoveryParams{
			LineRateBps:      10e9,
			MinRateBps:       5e6,
			RaiBps:           5e6,
			RhaiBps:          50e6,
			TimerNs:          15e6,
			ByteCounterBytes: 150_000,
			HyperBytes:       750_000,
			Threshold:        5,
			Half:             halfActive,
			TargetGuard:      1,
		},
		Gd:                q24One / 128,
		MinDecreaseFactor: q24One / 2,
	}
}

// qcnOracle is the RP of 802.1Qau in real numbers, with how far integers may stray: CR times a Q24, which is exact for
// G_d = 1/128, is rounded to 1 bit/s.
type qcnOracle struct {
	recoveryOracle
	params  rateQcnRpParams
	limited bool // by a rate limiter: since the first CNM
}

func (o *qcnOracle) apply(s rateQcnStep) {
	switch s.Event {
	case rateEventINIT:
		*o = qcnOracle{recoveryOracle: newRecoveryOracle(o.params.Recovery, s.NowNs), params: o.params}
	case rateEventACK:
		o.ack(s)
	case rateEventNOTICE:
		o.ack(s)
		keep := max(q24Float(o.params.MinDecreaseFactor), 1-float64(s.QntzFb)*q24Float(o.params.Gd))
		// Extra fast recovery: no target is lost to a CNM in the first cycle of the byte counter.
		o.cut(s.NowNs, s.SentBytes, keep, 0, !o.limited || o.counter.over > 0)
		o.limited = true
	case rateEventLOSS: // not in the standard: see qcn_rp_loss
		o.cut(s.NowNs, s.SentBytes, 0.5, 0, true)
		o.limited = true
	}
}

func (o *qcnOracle) ack(s rateQcnStep) {
	if o.limited {
		o.advance(s.NowNs, s.SentBytes)
	}
}

// checkQCN runs the steps of one flow and compares each with the oracle. It returns the last state.
func checkQCN(t testing.TB, s *senders, p rateQcnRpParams, steps []rateQcnStep) rateQcnRp {
	t.Helper()

	s.qcn(t, p, steps)
	o := qcnOracle{params: p}
	for i, step := range steps {
		o.apply(step)
		if err := o.check(step.Rp.Recovery); err != nil {
			t.Fatalf("step %d: %v; %+v, params %+v", i, err, step, p)
		}
	}
	qt.Assert(t, qt.IsTrue(o.unsures*20 <= len(steps)), qt.Commentf("%d of %d steps hang on rounding", o.unsures, len(steps)))
	return steps[len(steps)-1].Rp
}

// qcnFlow writes down what happens to a flow that starts at startNs.
type qcnFlow struct {
	steps     []rateQcnStep
	nowNs     uint64
	sentBytes uint64
}

func newQCNFlow() *qcnFlow {
	f := &qcnFlow{nowNs: startNs}
	return f.add(rateEventINIT, 0)
}

func (f *qcnFlow) add(e rateEvent, fb uint32) *qcnFlow {
	f.steps = append(f.steps, rateQcnStep{NowNs: f.nowNs, SentBytes: f.sentBytes, Event: e, QntzFb: fb})
	return f
}

// cnm lets CNMs with these feedbacks arrive.
func (f *qcnFlow) cnm(fbs ...uint32) *qcnFlow {
	for _, fb := range fbs {
		f.add(rateEventNOTICE, fb)
	}
	return f
}

// wait lets n times ns pass, with an ACK after each.
func (f *qcnFlow) wait(n int, ns uint64) *qcnFlow {
	for range n {
		f.nowNs += ns
		f.add(rateEventACK, 0)
	}
	return f
}

// send sends n times so many bytes in no time, with an ACK after each.
func (f *qcnFlow) send(n int, bytes uint64) *qcnFlow {
	for range n {
		f.sentBytes += bytes
		f.add(rateEventACK, 0)
	}
	return f
}

func TestQCNSteps(t *testing.T) {
	s := loadSenders(t)

	const timer, counter = 15e6, 150_000
	standard := standardQCN()
	wide := standard
	wide.Gd = q24One / 32
	total := standard
	total.Gd, total.MinDecreaseFactor = q24One/32, 0

	start := newQCNFlow
	cut := func() *qcnFlow { return start().cnm(32) } // CR 7.5, TR 10 Gbit/s
	for _, test := range []struct {
		name           string
		params         rateQcnRpParams
		flow           *qcnFlow
		wantCR, wantTR uint64
	}{
		{"starts at line rate", standard, start(), 10e9, 10e9},
		{"and stays there", standard, start().wait(20, timer).send(20, counter), 10e9, 10e9},
		{"1 - Fb / 128", standard, start().cnm(1), 9_921_875_000, 10e9},
		{"of the largest Fb", standard, start().cnm(63), 5_078_125_000, 10e9},
		{"at most half", wide, start().cnm(63), 5e9, 10e9},
		{"half exactly", wide, start().cnm(16), 5e9, 10e9},
		{"less than half", wide, start().cnm(15), 5_312_500_000, 10e9},
		{"all of it, but for the floor", total, start().cnm(32), 5e6, 10e9},
		{"more than all of it", total, start().cnm(33), 5e6, 10e9},
		{"extra fast recovery keeps the target", standard, cut().cnm(32, 32), 4_218_750_000, 10e9},
		{"in the first cycle of the byte counter only", standard, cut().send(1, counter).cnm(32), 6_562_500_000, 8.75e9},
		{"the timer's don't count", standard, cut().wait(1, timer).cnm(32), 6_562_500_000, 10e9},
		{"a kept target leaves the byte counter alone", standard, cut().send(1, counter-1).cnm(32).send(1, 1), 7.8125e9, 10e9},
		{"a new one starts it again", standard, cut().send(1, counter).send(1, counter-1).cnm(32).send(1, 1), 6_562_500_000, 8.75e9},
		{"fast recovery", standard, cut().send(1, counter), 8.75e9, 10e9},
		{"by the timer", standard, cut().wait(1, timer), 8.75e9, 10e9},
		{"by both", standard, cut().wait(2, timer).send(2, counter), 9.84375e9, 10e9},
		// Slide 27: AI if one of the two is in it, HAI if both are.
		{"active increase", standard, cut().send(1, counter).cnm(1).send(5, counter), 0, 8.755e9},
		{"5 Mbit/s a cycle", standard, cut().send(1, counter).cnm(1).send(5, counter).send(4, counter/2), 0, 8.775e9},
		{"hyper increase", standard, cut().send(1, counter).cnm(1).send(5, counter).wait(5, timer), 0, 8.825e9},
		{"by one more each cycle that both have", standard, cut().send(1, counter).cnm(1).send(5, counter).wait(5, timer).wait(1, timer/2).send(1, counter/2), 0, 8.975e9},
		{"not before 500 packets", standard, cut().send(1, counter).cnm(1).send(5, counter-1).wait(5, timer), 0, 8.755e9},
		{"after 500 packets", standard, cut().send(1, counter).cnm(1).send(5, counter).wait(5, timer), 0, 8.825e9},
		// The guard: 5 cuts to 1/2 leave CR at TR / 32.
		{"target guard", wide, start().cnm(63, 63, 63, 63, 63).wait(1, timer), 781_250_000, 1.25e9},
		{"of the byte counter", wide, start().cnm(63, 63, 63, 63, 63).send(1, counter), 781_250_000, 1.25e9},
		{"not at a tenth or more", wide, start().cnm(63, 63, 63).wait(1, timer), 5.625e9, 10e9},
		{"never over line rate", standard, cut().send(5, counter).send(3000, counter/2), 10e9 - 1, 10e9},
		{"loss halves", standard, cut().add(rateEventLOSS, 0), 3.75e9, 7.5e9},
		{"and limits", standard, start().add(rateEventLOSS, 0).wait(1, timer), 7.5e9, 10e9},
		{"floor", standard, start().cnm(63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63), 5e6, 10e9},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := checkQCN(t, s, test.params, test.flow.steps)
			if test.wantCR > 0 {
				qt.Check(t, qt.Equals(got.Recovery.RateBps, test.wantCR))
			}
			qt.Check(t, qt.Equals(got.Recovery.TargetBps, test.wantTR))
		})
	}
}

// Slide 27: "Byte-counter: 5 cycles of FR (150KB per cycle), AI cycles afterwards (75KB per cycle)", and the timer
// likewise, each by its own count. ns3-rdma: both halve in hyper increase.
func TestQCNHalving(t *testing.T) {
	s := loadSenders(t)

	const timer, counter = 15e6, 150_000
	for _, test := range []struct {
		name                   string
		half                   rateRecoveryHalf
		flow                   *qcnFlow
		wantTimer, wantCounter float64 // length of the cycle that runs, over the full one
	}{
		{"active: fast recovery", halfActive, newQCNFlow().cnm(32).send(4, counter).wait(4, timer), 1, 1},
		{"active: the byte counter alone", halfActive, newQCNFlow().cnm(32).send(5, counter).wait(1, timer), 1, 0.5},
		{"active: the timer alone", halfActive, newQCNFlow().cnm(32).wait(5, timer).send(1, counter), 0.5, 1},
		{"active: both", halfActive, newQCNFlow().cnm(32).wait(5, timer).send(5, counter), 0.5, 0.5},
		{"hyper: active increase", halfHyper, newQCNFlow().cnm(32).send(9, counter).wait(4, timer), 1, 1},
		{"hyper: both in it", halfHyper, newQCNFlow().cnm(32).send(5, counter).wait(5, timer).send(1, counter), 0.5, 0.5},
		{"never", halfNever, newQCNFlow().cnm(32).send(9, counter).wait(9, timer).send(1, counter), 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := standardQCN()
			p.Recovery.Half = test.half
			got := checkQCN(t, s, p, test.flow.steps).Recovery
			qt.Check(t, qt.Equals(float64(got.TimerAtNs-test.flow.nowNs)/timer, test.wantTimer))
			qt.Check(t, qt.Equals(float64(got.CounterAtBytes-test.flow.sentBytes)/counter, test.wantCounter))
		})
	}
}

// One call takes 32 cycles at most, and the next goes on where it stopped.
func TestQCNManyCycles(t *testing.T) {
	s := loadSenders(t)

	p := standardQCN()
	p.Recovery.Half = halfNever
	flow := newQCNFlow().cnm(63).send(1, 150_000).cnm(63).send(1, 150_000*100)
	var stages []uint32
	for range 4 {
		stages = append(stages, checkQCN(t, s, p, flow.steps).Recovery.ByteStage)
		flow.send(1, 0)
	}
	qt.Assert(t, qt.DeepEquals(stages, []uint32{32, 64, 96, 100}))
}

var _ = oracle(TestQCNRandomCNMs, "qcn")

func TestQCNRandomCNMs(t *testing.T) {
	s := loadSenders(t)

	const sequences, length = 100, 500
	for half, name := range []string{"never", "active", "hyper"} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(sequences) {
				r := rand.New(rand.NewPCG(seed, 30))
				p := randomQCNParams(r, rateRecoveryHalf(half))
				checkQCN(t, s, p, randomQCNSteps(r, p, length))
			}
		})
	}
}

func randomQCNParams(r *rand.Rand, half rateRecoveryHalf) rateQcnRpParams {
	p := rateQcnRpParams{
		Recovery:          randomRecoveryParams(r, half),
		Gd:                pick(r, q24One/128, q24One/128, uint32(logUniform(r, 1, q24One))),
		MinDecreaseFactor: pick(r, q24One/2, q24One/2, uint32(r.IntN(q24One+1))),
	}
	return p
}

// randomQCNSteps makes a flow that hears CNMs now and then, or in bursts.
func randomQCNSteps(r *rand.Rand, p rateQcnRpParams, n int) []rateQcnStep {
	c := newSenderClock(r, p.Recovery)
	steps := []rateQcnStep{{NowNs: c.nowNs, Event: rateEventINIT}}
	share := pick(r, 0.02, 0.1, 0.5)
	for len(steps) < n {
		if r.IntN(4) > 0 {
			c.tick(r)
		}
		step := rateQcnStep{NowNs: c.nowNs, SentBytes: c.sentBytes, Event: rateEventACK}
		switch {
		case r.Float64() < share:
			step.Event, step.QntzFb = rateEventNOTICE, 1+uint32(r.IntN(qcnFbMax))
		case r.IntN(100) == 0:
			step.Event = rateEventLOSS
		}
		steps = append(steps, step)
	}
	return steps
}

// The congestion point.

func standardCP() markQcnCpParams {
	return markQcnCpParams{QeqBytes: 26_000, SampleBaseBytes: 150_000, W: 2 * qcnWOne, Jitter: q24(0.15)}
}

// quantise is Fb's definition: 63 where |Fb| is Q_eq (2 w + 1) or more, in proportion below. The integer next to it
// counts as well where w is a fraction, for which w * Q_delta is rounded down to 1 byte.
func quantise(p markQcnCpParams, qoff, qdelta int64) (least, most uint32) {
	w := float64(p.W) / qcnWOne
	top := float64(p.QeqBytes) * (2*w + 1)
	fb := float64(qoff) + w*float64(qdelta)
	err := 0.
	if p.W%qcnWOne != 0 {
		err = 2
	}
	level := func(fb float64) uint32 {
		return uint32(math.Floor(min(max(fb/top, 0), 1)*qcnFbMax + 1e-9))
	}
	return level(fb - err), level(fb + err)
}

// cnmUnits is what a CNM's 16-bit fields say of so many bytes, in units of 64.
func cnmUnits(bytes int64) float64 {
	return math.Floor(min(max(float64(bytes)/64, math.MinInt16), math.MaxInt16))
}

// checkSamples runs packets through a queue, and compares when it is sampled, and with what outcome, with the
// definition. It returns the samples.
func checkSamples(t testing.TB, m *markers, p markQcnCpParams, seed uint32, steps []markSampleStep) []markSampleStep {
	t.Helper()

	m.sample(t, p, seed, steps)
	var samples []markSampleStep
	credit, queueOld := int64(p.SampleBaseBytes), int64(0)
	for i, step := range steps {
		credit -= int64(step.LenBytes)
		if credit > 0 {
			if step.Sample != (markQcnSample{}) || step.CreditBytes != credit {
				t.Fatalf("packet %d sampled although %d bytes are left: %+v, params %+v", i, credit, step, p)
			}
			continue
		}
		queue := int64(step.QueueBytes)
		qoff, qdelta := queue-int64(p.QeqBytes), queue-queueOld
		least, most := quantise(p, qoff, qdelta)
		fb := step.Sample.QntzFb
		if step.Sample.QoffBytes != qoff || step.Sample.QdeltaBytes != qdelta || fb < least || fb > most {
			t.Fatalf("packet %d: want Q_off %d, Q_delta %d, Fb %d to %d; %+v, params %+v", i, qoff, qdelta, least, most, step, p)
		}

		near(t, float64(step.QoffUnits), cnmUnits(qoff), 0, "cnmQOffset of packet %d", i)
		near(t, float64(step.QdeltaUnits), cnmUnits(qdelta), 0, "cnmQDelta of packet %d", i)

		// The table of the standard's pseudocode is 150 KB over 1 to 8; the jitter is to both sides.
		mean := float64(p.SampleBaseBytes) / float64(1+fb/8)
		near(t, float64(step.CreditBytes), mean, mean*q24Float(p.Jitter)+2, "credit after packet %d, Fb %d, params %+v", i, fb, p)
		credit, queueOld = step.CreditBytes, queue
		samples = append(samples, step)
	}
	return samples
}

func TestQCNFeedback(t *testing.T) {
	m := loadMarkers(t)

	const top = 26_000 * 5 // Q_eq (2 w + 1)
	for _, test := range []struct {
		name          string
		before, queue uint64 // at two samples in a row
		wantFb        uint32
	}{
		{"empty", 0, 0, 0},
		{"at Q_eq", 26_000, 26_000, 0},
		{"a packet more", 27_500, 27_500, 0}, // 1500 * 63 / 130000
		{"one level", 28_064, 28_064, 1},
		{"just below it", 28_063, 28_063, 0},
		{"growing", 26_000, 36_000, 14}, // 30000 * 63 / 130000
		{"growing from below Q_eq", 0, 20_000, 16},
		{"shrinking", 60_000, 40_000, 0},
		{"shrinking slowly", 60_000, 55_000, 9},
		{"just below saturation", 26_000 + top - 1, 26_000 + top - 1, 62},
		{"saturation", 26_000 + top, 26_000 + top, 63},
		{"beyond", 26_000, 10_000_000, 63},
		{"the largest queue", 1 << 40, 1 << 40, 63},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := []markSampleStep{
				{QueueBytes: test.before, LenBytes: 1e9},
				{QueueBytes: test.queue, LenBytes: 1e9},
			}
			checkSamples(t, m, standardCP(), 1, steps)
			qt.Assert(t, qt.Equals(steps[1].Sample.QntzFb, test.wantFb))
		})
	}
}

// The credits of the standard's pseudocode, in KB: 150, 75, 50, 37.5, 30, 25, 21.5, 18.5; its last two are 150/7 and
// 150/8, rounded.
func TestQCNCredit(t *testing.T) {
	m := loadMarkers(t)

	p := standardCP()
	want := []int64{150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_428, 18_750}
	for fb := range uint64(qcnFbMax + 1) {
		p.Jitter = 0
		queue := p.QeqBytes + (fb*p.QeqBytes*5+qcnFbMax-1)/qcnFbMax // the smallest with this Fb
		steps := []markSampleStep{{QueueBytes: queue, LenBytes: 1e9}, {QueueBytes: queue, LenBytes: 1e9}}
		checkSamples(t, m, p, 1, steps)
		qt.Assert(t, qt.Equals(steps[1].Sample.QntzFb, uint32(fb)))
		qt.Assert(t, qt.Equals(steps[1].CreditBytes, want[fb/8]), qt.Commentf("Fb %d", fb))
	}
}

// Jitter is uniform, to both sides alike.
func TestQCNJitter(t *testing.T) {
	m := loadMarkers(t)

	const samples = 20_000
	for _, jitter := range []float64{0.01, 0.15, 0.5, 1} {
		p := standardCP()
		p.Jitter = q24(jitter)
		steps := make([]markSampleStep, samples)
		for i := range steps {
			steps[i].LenBytes = 1e9
		}
		checkSamples(t, m, p, uint32(samples*jitter), steps)

		sum, squares, least, most := 0., 0., math.Inf(1), math.Inf(-1)
		for _, step := range steps {
			x := (float64(step.CreditBytes)/float64(p.SampleBaseBytes) - 1) / jitter // -1 to 1
			sum += x
			squares += x * x
			least, most = min(least, x), max(most, x)
		}
		near(t, sum/samples, 0, 0.02, "mean of jitter %g", jitter) // standard deviation 0.004
		near(t, squares/samples, 1./3, 0.01, "variance of jitter %g", jitter)
		near(t, least, -1, 0.01, "least jitter of %g", jitter)
		near(t, most, 1, 0.01, "most jitter of %g", jitter)
	}
}

// Another seed, another sequence; the same seed, the same. Seed 0 works too.
func TestQCNSeed(t *testing.T) {
	m := loadMarkers(t)

	credits := func(seed uint32) (credits []int64) {
		steps := make([]markSampleStep, 100)
		for i := range steps {
			steps[i].LenBytes = 1e9
		}
		for _, step := range checkSamples(t, m, standardCP(), seed, steps) {
			credits = append(credits, step.CreditBytes)
		}
		return credits
	}
	qt.Assert(t, qt.DeepEquals(credits(7), credits(7)))
	qt.Assert(t, qt.Not(qt.DeepEquals(credits(7), credits(8))))
	qt.Assert(t, qt.Not(qt.Equals(credits(0)[0], credits(0)[1])))
}

func TestQCNRandomQueues(t *testing.T) {
	m := loadMarkers(t)

	const sequences, length = 60, 2000
	var levels [qcnFbMax + 1]int
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 31))
		p := standardCP()
		if seed%2 > 0 {
			p = markQcnCpParams{
				QeqBytes:        logUniform(r, 1000, 1<<32-1),
				SampleBaseBytes: logUniform(r, 1000, 1<<32-1),
				W:               uint32(logUniform(r, 1, 16*qcnWOne)),
				Jitter:          q24(0.15 * r.Float64()),
			}
		}
		for _, sample := range checkSamples(t, m, p, r.Uint32(), randomQueue(r, p, length)) {
			levels[sample.Sample.QntzFb]++
		}
	}
	for fb, n := range levels {
		qt.Check(t, qt.IsTrue(n > 0), qt.Commentf("no sample with Fb %d", fb))
	}
}

// randomQueue makes a queue that wanders between empty and twice what saturates Fb.
func randomQueue(r *rand.Rand, p markQcnCpParams, n int) []markSampleStep {
	steps := make([]markSampleStep, n)
	top := float64(p.QeqBytes) * (2*float64(p.W)/qcnWOne + 2)
	queue := top * r.Float64()
	for i := range steps {
		queue = min(max(queue+top*0.05*r.NormFloat64(), 0), top)
		steps[i] = markSampleStep{QueueBytes: uint64(queue), LenBytes: uint32(logUniform(r, 64, max(p.SampleBaseBytes/2, 65)))}
	}
	return steps
}
