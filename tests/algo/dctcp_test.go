// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

const dctcpOne = 1024 // Q10

// dctcpLinux is the arithmetic of net/ipv4/tcp_dctcp.c, line by line.
type dctcpLinux struct {
	shiftG, alpha                         uint32
	oldDelivered, oldDeliveredCE, nextSeq uint32
}

func (d *dctcpLinux) reset(s markWindowStep) {
	d.nextSeq = s.SndNxt
	d.oldDelivered = s.Delivered
	d.oldDeliveredCE = s.DeliveredCe
}

// updateAlpha returns whether a window ended.
func (d *dctcpLinux) updateAlpha(s markWindowStep) bool {
	if before(s.SndUna, d.nextSeq) {
		return false
	}
	deliveredCE := s.DeliveredCe - d.oldDeliveredCE
	alpha := d.alpha
	alpha -= minNotZero(alpha, alpha>>d.shiftG)
	if deliveredCE != 0 {
		delivered := s.Delivered - d.oldDelivered
		deliveredCE <<= 10 - d.shiftG
		deliveredCE /= max(1, delivered)
		alpha = min(alpha+deliveredCE, dctcpOne)
	}
	d.alpha = alpha
	d.reset(s)
	return true
}

func (d *dctcpLinux) ssthresh(cwnd uint32) uint32 {
	return max(cwnd-((cwnd*d.alpha)>>11), 2)
}

func before(a, b uint32) bool { return int32(a-b) < 0 }

func minNotZero(a, b uint32) uint32 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

// dctcpRFC is RFC 8257, sec. 3.3, in real numbers: alpha = (1 - g) alpha + g M, with how far Q10 may stray:
//
//	alpha - alpha g  takes less than 1 too little; all of alpha, if that is less than 1/g
//	g M              rounded down
type dctcpRFC struct {
	g, alpha, err float64 // in Q10
}

func (d *dctcpRFC) window(before uint32, packets, marked uint32) {
	rounded := 1.
	if float64(before)*d.g < 1 {
		rounded = float64(before)
	}
	if marked > 0 {
		rounded++
	}
	share := float64(marked) / float64(max(packets, 1))
	d.alpha = min((1-d.g)*d.alpha+d.g*share*dctcpOne, dctcpOne)
	d.err = (1-d.g)*d.err + rounded
}

// checkDCTCP runs the ACKs of a connection, the first of which starts it, and compares every outcome with Linux and
// with the RFC. It returns the last.
func checkDCTCP(t testing.TB, m *markers, p markDctcpParams, steps []markWindowStep) markWindowStep {
	t.Helper()

	m.window(t, p, steps)
	linux := dctcpLinux{shiftG: p.G_shift, alpha: p.InitialAlpha}
	linux.reset(steps[0])
	rfc := dctcpRFC{g: math.Exp2(-float64(p.G_shift)), alpha: float64(p.InitialAlpha)}
	for i, step := range steps {
		ended := false
		if i > 0 {
			alpha := linux.alpha
			packets, marked := step.Delivered-linux.oldDelivered, step.DeliveredCe-linux.oldDeliveredCE
			if ended = linux.updateAlpha(step); ended {
				rfc.window(alpha, packets, marked)
			}
		}
		if step.Ended != ended || step.Alpha != linux.alpha || step.Ssthresh != linux.ssthresh(step.Cwnd) {
			t.Fatalf("ACK %d: want window ended %v, alpha %d, ssthresh %d; %+v, params %+v", i, ended, linux.alpha, linux.ssthresh(step.Cwnd), step, p)
		}
		near(t, float64(step.Alpha), rfc.alpha, rfc.err+1e-9, "RFC 8257's alpha, ACK %d, params %+v", i, p)
	}
	return steps[len(steps)-1]
}

// dctcpWindows makes one ACK a window of so many packets, these shares of them marked.
func dctcpWindows(packets uint32, shares ...float64) []markWindowStep {
	steps := []markWindowStep{{SndUna: 0, SndNxt: 0, Cwnd: packets}}
	for _, share := range shares {
		s := steps[len(steps)-1]
		s.SndUna, s.SndNxt = s.SndUna+packets*1000, s.SndNxt+packets*1000
		s.Delivered += packets
		s.DeliveredCe += uint32(math.Round(share * float64(packets)))
		steps = append(steps, s)
	}
	return steps
}

func repeat(share float64, n int) []float64 {
	shares := make([]float64, n)
	for i := range shares {
		shares[i] = share
	}
	return shares
}

func TestDCTCPAlpha(t *testing.T) {
	m := loadMarkers(t)

	for _, test := range []struct {
		name         string
		initial      uint32
		shares       []float64
		want         uint32
		wantSsthresh uint32 // of 1000 packets
	}{
		{"starts where it is told", 1024, nil, 1024, 500},
		{"all marked: stays at 1", 1024, repeat(1, 50), 1024, 500},
		{"none marked: 15/16", 1024, repeat(0, 1), 960, 532},
		{"half marked", 1024, repeat(0.5, 1), 992, 516},
		{"from 0", 0, repeat(1, 1), 64, 969},
		{"all marked, from 0: below 1 by what is rounded", 0, repeat(1, 200), 1024, 500},
		{"none marked: ends at 0", 1024, repeat(0, 200), 0, 1000},
		{"below g is none", 15, repeat(0, 1), 0, 1000},
		{"at g is not", 16, repeat(0, 1), 15, 993},
		{"a quarter marked", 0, repeat(0.25, 300), 256, 875},
		{"one in a thousand is lost to rounding", 0, repeat(0.001, 300), 0, 1000},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := markDctcpParams{G_shift: 4, InitialAlpha: test.initial}
			got := checkDCTCP(t, m, p, dctcpWindows(1000, test.shares...))
			qt.Check(t, qt.Equals(got.Alpha, test.want))
			qt.Check(t, qt.Equals(got.Ssthresh, test.wantSsthresh))
		})
	}
}

// Alpha changes once a window: when all that was sent at its start is acknowledged.
func TestDCTCPWindow(t *testing.T) {
	m := loadMarkers(t)

	for _, origin := range []uint32{0, math.MaxUint32 - 5000} { // sequence numbers wrap
		p := markDctcpParams{G_shift: 4, InitialAlpha: 1024}
		ack := func(una, nxt, packets, marked uint32) markWindowStep {
			return markWindowStep{
				SndUna: origin + una, SndNxt: origin + nxt, Cwnd: 10,
				Delivered: math.MaxUint32 - 7 + packets, DeliveredCe: math.MaxUint32 - 2 + marked, // so do counters
			}
		}
		steps := []markWindowStep{
			ack(0, 10_000, 0, 0),
			ack(1000, 11_000, 1, 1),
			ack(9999, 20_000, 9, 5),
			ack(10_000, 20_000, 10, 5), // half of 10 packets: 1024 * 15/16 + 32
			ack(19_999, 29_000, 19, 15),
			ack(25_000, 30_000, 25, 5), // none of 15
		}
		checkDCTCP(t, m, p, steps)
		var alphas []uint32
		for _, step := range steps {
			alphas = append(alphas, step.Alpha)
		}
		qt.Check(t, qt.DeepEquals(alphas, []uint32{1024, 1024, 1024, 992, 992, 930}))
	}
}

// Slow start ends without marks when all round trips of a window are longer than the least one by
// the parameter, and by an eighth.
func TestDCTCPSlowStartDelay(t *testing.T) {
	m := loadMarkers(t)

	const us = 1000
	for _, test := range []struct {
		name        string
		delay, rtt  uint64
		least       uint64
		window      int // round trips are measured so often in a window
		short       int // so many of which are the least one
		endsAt, of  int // the sample with which slow start ends; 0: none
		sndNxtStart uint32
	}{
		{"longer", 4000 * us, 4101 * us, 100 * us, 20, 0, 8, 60, 0},
		{"as long as allowed", 4000 * us, 4100 * us, 100 * us, 20, 0, 0, 60, 0},
		{"an eighth longer is allowed", 4000 * us, 90_000 * us, 80_000 * us, 20, 0, 0, 60, 0},
		{"more than an eighth", 4000 * us, 90_001 * us, 80_000 * us, 20, 0, 8, 60, 0},
		{"few a window", 4000 * us, 9000 * us, 100 * us, 4, 0, 5, 60, 0},
		{"one short in each window", 4000 * us, 9000 * us, 100 * us, 20, 1, 0, 60, 0},
		{"too few to tell", 4000 * us, 40_000 * us, 100 * us, 2, 0, 0, 60, 0},
		{"sequence numbers wrap", 4000 * us, 9000 * us, 100 * us, 4, 0, 5, 60, math.MaxUint32 - 9},
		{"off", 0, 90_001 * us, 80_000 * us, 20, 0, 0, 60, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var steps []markWindowStep
			for i := range test.of {
				s := markWindowStep{RttNs: test.rtt, LeastRttNs: test.least,
					SndUna: test.sndNxtStart + uint32(i),
					SndNxt: test.sndNxtStart + uint32(i+test.window)}
				if i%test.window < test.short {
					s.RttNs = test.least
				}
				steps = append(steps, s)
			}
			m.window(t, markDctcpParams{G_shift: 4, SlowStartDelayNs: test.delay}, steps)
			ends := 0
			for i := len(steps) - 1; i >= 0; i-- {
				if steps[i].Queues {
					ends = i + 1
				}
			}
			qt.Check(t, qt.Equals(ends, test.endsAt))
		})
	}
}

// Alpha stays within 1 even if more packets are marked than delivered, or none is.
func TestDCTCPMoreMarksThanPackets(t *testing.T) {
	m := loadMarkers(t)

	for _, packets := range []uint32{0, 1, 9} {
		p := markDctcpParams{G_shift: 4, InitialAlpha: 1000}
		steps := []markWindowStep{{}, {SndUna: 1000, SndNxt: 1000, Delivered: packets, DeliveredCe: 100}}
		m.window(t, p, steps)
		linux := dctcpLinux{shiftG: p.G_shift, alpha: p.InitialAlpha}
		linux.updateAlpha(steps[1])
		qt.Check(t, qt.Equals(steps[1].Alpha, linux.alpha))
		qt.Check(t, qt.Equals(steps[1].Alpha, dctcpOne))
	}
}

// The window after a mark: cwnd (1 - alpha / 2), at least 2.
func TestDCTCPSsthresh(t *testing.T) {
	m := loadMarkers(t)

	for alpha := range uint32(dctcpOne + 1) {
		steps := make([]markWindowStep, 0, 100)
		for cwnd := uint32(0); cwnd < 1<<22; cwnd += 1 + cwnd/5 { // alpha cwnd fits 32 bits
			steps = append(steps, markWindowStep{Cwnd: cwnd, SndNxt: 1})
		}
		p := markDctcpParams{G_shift: 4, InitialAlpha: alpha}
		checkDCTCP(t, m, p, steps)
		for _, step := range steps {
			want := max(float64(step.Cwnd)*(1-float64(alpha)/dctcpOne/2), 2)
			near(t, float64(step.Ssthresh), want, 1, "ssthresh of %d packets, alpha %d", step.Cwnd, alpha)
		}
	}
}

var _ = oracle(TestDCTCPRandomACKs, "pcn_dctcp")

func TestDCTCPRandomACKs(t *testing.T) {
	m := loadMarkers(t)

	const sequences, length = 60, 2000
	windows := 0
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 52))
		p := markDctcpParams{G_shift: pick(r, 4, uint32(r.IntN(11))), InitialAlpha: uint32(r.IntN(dctcpOne + 1))}
		steps := randomACKs(r, length)
		checkDCTCP(t, m, p, steps)
		for _, step := range steps {
			if step.Ended {
				windows++
			}
		}
	}
	qt.Assert(t, qt.IsTrue(windows > 100*sequences), qt.Commentf("%d windows", windows))
}

// randomACKs makes a connection with a window that changes, marks that come and go, and counters that wrap.
func randomACKs(r *rand.Rand, n int) []markWindowStep {
	s := markWindowStep{SndUna: r.Uint32(), Delivered: r.Uint32(), DeliveredCe: r.Uint32(), Cwnd: 10}
	s.SndNxt = s.SndUna + 10_000
	steps := []markWindowStep{s}
	share := 0.
	for len(steps) < n {
		if r.IntN(50) == 0 {
			share = pick(r, 0, 0.01, 0.3, 1)
		}
		packets := uint32(logUniform(r, 1, 40))
		s.SndUna += min(packets*1000, s.SndNxt-s.SndUna)
		s.Delivered += packets
		for range packets {
			if r.Float64() < share {
				s.DeliveredCe++
			}
		}
		s.Cwnd = uint32(logUniform(r, 2, 100))
		s.SndNxt = max(s.SndNxt-s.SndUna, s.Cwnd*1000) + s.SndUna
		steps = append(steps, s)
	}
	return steps
}
