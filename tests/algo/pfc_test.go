// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

const (
	pfcNone   = algoPfcActionPFC_NONE
	pfcPause  = algoPfcActionPFC_PAUSE
	pfcResume = algoPfcActionPFC_RESUME
)

// ingressOracle is an ingress under 802.1Qbb: a state machine over how full it is, in exact 1/256 of a byte.
type ingressOracle struct {
	params  algoPfcParams
	pausing bool
	lookNs  uint64 // when a switch that repeats PAUSE looks again; 0: it waits for a packet
}

const repeatNs = 2500 // half of ns3-rdma's 5 us

// xoff is the threshold, in 1/256 of a byte.
func (o *ingressOracle) xoff(freeBytes uint64) uint64 {
	if o.params.Alpha != 0 {
		return uint64(o.params.Alpha) * freeBytes
	}
	return 256 * o.params.XoffBytes
}

// frames are what a switch that repeats PAUSE has sent since the step before.
func (o *ingressOracle) frames(s algoPfcStep) (n uint32) {
	for ; o.lookNs != 0 && o.lookNs <= s.T_ns; o.lookNs += repeatNs {
		n++
	}
	switch over := 256*s.IngressBytes > o.xoff(s.FreeBytes); {
	case !over:
		o.lookNs = 0
	case s.Came != 0:
		n++
		o.lookNs = s.T_ns + repeatNs
	}
	return n
}

func (o *ingressOracle) apply(ingressBytes, freeBytes uint64) algoPfcAction {
	xoff := o.xoff(freeBytes)
	switch {
	case !o.pausing && 256*ingressBytes > xoff:
		o.pausing = true
		return pfcPause
	case o.pausing && (ingressBytes == 0 || 256*(ingressBytes+o.params.XonOffsetBytes) <= xoff):
		o.pausing = false
		return pfcResume
	}
	return pfcNone
}

// checkPFC runs one ingress from empty and compares every action with the oracle's.
func checkPFC(t testing.TB, b *bytecode, p algoPfcParams, steps []algoPfcStep) (actions []algoPfcAction) {
	t.Helper()

	b.pfc(t, p, steps)
	o := ingressOracle{params: p}
	for i, s := range steps {
		if want := o.apply(s.IngressBytes, s.FreeBytes); s.Action != want {
			t.Fatalf("step %d: got %v, want %v; %+v, params %+v", i, s.Action, want, s, p)
		}
		if want := o.frames(s); s.Frames != want {
			t.Fatalf("step %d: %d frames, want %d; %+v, params %+v", i, s.Frames, want, s, p)
		}
		actions = append(actions, s.Action)
	}
	return actions
}

func TestPFCThresholds(t *testing.T) {
	b := load(t)

	const free = 1 << 20
	static := algoPfcParams{XoffBytes: 512_000, XonOffsetBytes: 2000}
	eighth := algoPfcParams{XoffBytes: 1, XonOffsetBytes: 2000, Alpha: 256 / 8}
	for _, test := range []struct {
		name   string
		params algoPfcParams
		steps  []algoPfcStep
		want   []algoPfcAction
	}{
		{
			"static: over XOFF, down to XON", static,
			[]algoPfcStep{{IngressBytes: 512_000}, {IngressBytes: 512_001}, {IngressBytes: 600_000}, {IngressBytes: 510_001}, {IngressBytes: 510_000}, {IngressBytes: 510_001}},
			[]algoPfcAction{pfcNone, pfcPause, pfcNone, pfcNone, pfcResume, pfcNone},
		},
		{
			"static ignores the free buffer", static,
			[]algoPfcStep{{IngressBytes: 512_000, FreeBytes: 0}, {IngressBytes: 512_001, FreeBytes: 1 << 40}},
			[]algoPfcAction{pfcNone, pfcPause},
		},
		{
			"alpha 1/8 of 1 MiB", eighth,
			[]algoPfcStep{{IngressBytes: 131_072, FreeBytes: free}, {IngressBytes: 131_073, FreeBytes: free}, {IngressBytes: 129_073, FreeBytes: free}, {IngressBytes: 129_072, FreeBytes: free}},
			[]algoPfcAction{pfcNone, pfcPause, pfcNone, pfcResume},
		},
		{
			"the threshold falls as the buffer fills", eighth,
			[]algoPfcStep{{IngressBytes: 100_000, FreeBytes: free}, {IngressBytes: 100_000, FreeBytes: free / 2}, {IngressBytes: 100_000, FreeBytes: free}},
			[]algoPfcAction{pfcNone, pfcPause, pfcResume},
		},
		{
			"alpha 8", algoPfcParams{Alpha: 8 * 256},
			[]algoPfcStep{{IngressBytes: 8000, FreeBytes: 1000}, {IngressBytes: 8001, FreeBytes: 1000}},
			[]algoPfcAction{pfcNone, pfcPause},
		},
		{
			"no free buffer", eighth,
			[]algoPfcStep{{}, {IngressBytes: 1}, {IngressBytes: 1}, {}, {}},
			[]algoPfcAction{pfcNone, pfcPause, pfcNone, pfcResume, pfcNone},
		},
		{
			"XON is not below 0", algoPfcParams{XoffBytes: 1000, XonOffsetBytes: 5000},
			[]algoPfcStep{{IngressBytes: 1001}, {IngressBytes: 1}, {}},
			[]algoPfcAction{pfcPause, pfcNone, pfcResume},
		},
		{
			"no hysteresis", algoPfcParams{XoffBytes: 1000},
			[]algoPfcStep{{IngressBytes: 1001}, {IngressBytes: 1000}, {IngressBytes: 1001}},
			[]algoPfcAction{pfcPause, pfcResume, pfcPause},
		},
		{
			"1 TB free at the largest sensible alpha", algoPfcParams{Alpha: 256 * 256},
			[]algoPfcStep{{IngressBytes: 256 << 40, FreeBytes: 1 << 40}, {IngressBytes: 256<<40 + 1, FreeBytes: 1 << 40}},
			[]algoPfcAction{pfcNone, pfcPause},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			qt.Assert(t, qt.DeepEquals(checkPFC(t, b, test.params, test.steps), test.want))
		})
	}
}

func TestPFCRandomPackets(t *testing.T) {
	b := load(t)

	const sequences, length = 100, 3000
	pauses, resumes, frames := 0, 0, uint32(0)
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := algoPfcParams{
			XoffBytes:      logUniform(r, 1, 1e6),
			XonOffsetBytes: pick(r, 0, logUniform(r, 1, 2e6)),
			Alpha:          pick[uint32](r, 0, 0, 1, 256/16, 256/8, 256, 8*256),
		}
		steps := randomIngress(r, length)
		for i, a := range checkPFC(t, b, p, steps) {
			frames += steps[i].Frames
			switch a {
			case pfcPause:
				pauses++
			case pfcResume:
				resumes++
			}
		}
	}
	qt.Assert(t, qt.IsTrue(pauses > 10*sequences && resumes > 10*sequences), qt.Commentf("%d PAUSEs, %d RESUMEs", pauses, resumes))
	qt.Assert(t, qt.IsTrue(frames > 10*uint32(pauses)), qt.Commentf("%d frames", frames))
}

// randomIngress makes packets come to and leave an ingress that shares a buffer with others, and empties it at times.
func randomIngress(r *rand.Rand, n int) []algoPfcStep {
	const mtuBytes = 9000
	bufferBytes := logUniform(r, 20*mtuBytes, 64<<20)
	others := uint64(0)
	ingress := uint64(0)
	filling := true
	var ns uint64

	steps := make([]algoPfcStep, n)
	for i := range steps {
		size := 64 + r.Uint64N(mtuBytes-63)
		switch x := r.Float64(); {
		case x < 0.02:
			others = r.Uint64N(bufferBytes - ingress + 1)
		case x < 0.04:
			ingress = 0
		case x < 0.06:
			filling = !filling
		case filling == (x < 0.8):
			ingress = min(ingress+size, bufferBytes-others)
		default:
			ingress -= min(size, ingress)
		}
		ns += 1 + r.Uint64N(2*repeatNs)
		steps[i] = algoPfcStep{IngressBytes: ingress, FreeBytes: bufferBytes - others - ingress, T_ns: ns}
		if i > 0 && ingress > steps[i-1].IngressBytes {
			steps[i].Came = 1
		}
	}
	return steps
}

// Whatever the thresholds and the buffer, an ingress that holds nothing is never left paused: nothing would ever
// resume it.
func TestPFCEmptyResumes(t *testing.T) {
	b := load(t)

	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		p := algoPfcParams{
			XoffBytes:      pick(r, 0, logUniform(r, 1, 1<<40)),
			XonOffsetBytes: pick(r, 0, logUniform(r, 1, 1<<60)),
			Alpha:          pick(r, 0, uint32(logUniform(r, 1, 1<<16))),
		}
		steps := []algoPfcStep{
			{IngressBytes: 1 << 62},
			{FreeBytes: pick(r, 0, logUniform(r, 1, 1<<40))},
		}
		b.pfc(t, p, steps)
		comment := qt.Commentf("%+v, %+v", p, steps)
		qt.Assert(t, qt.Equals(steps[0].Action, pfcPause), comment)
		qt.Assert(t, qt.Equals(steps[1].Action, pfcResume), comment)
	}
}

// An action is never undone by looking again.
func TestPFCSettles(t *testing.T) {
	b := load(t)

	for _, alpha := range []uint32{0, 32, 256} {
		t.Run(fmt.Sprint(alpha), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(alpha), 6))
			p := algoPfcParams{XoffBytes: 100_000, XonOffsetBytes: 0, Alpha: alpha}
			var twice []algoPfcStep
			for _, s := range randomIngress(r, 3000) {
				twice = append(twice, s, s)
			}
			b.pfc(t, p, twice)
			for i := 1; i < len(twice); i += 2 {
				qt.Assert(t, qt.Equals(twice[i].Action, pfcNone), qt.Commentf("%+v", twice[i]))
			}
		})
	}
}
