// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// ackOracle is what a notification point would have made of the packets that ACKs tell of, arriving with their ACK, and
// Algorithm 1 on that.
type ackOracle struct {
	np      npOracle
	rp      *rpOracle
	auto    bool
	heardNs uint64
	last    algoAckStep
	windows uint32
}

func (o *ackOracle) ack(s algoAckStep) {
	if s.Ack.Cnps != o.last.Ack.Cnps {
		o.heardNs = s.Ack.NowNs
	}
	packets, marked := s.Ack.Packets-o.last.Ack.Packets, s.Ack.Marked-o.last.Ack.Marked
	o.last = s
	var cnp algoPcnNpCnp
	for i := range packets {
		p := algoNpStep{NowNs: s.Ack.NowNs, SizeBytes: s.Ack.FrameBytes, Ce: i < marked}
		if c := o.np.packet(p); c.Send {
			cnp = c
		}
	}
	heard := o.auto && o.heardNs != 0 && s.Ack.NowNs-o.heardNs < 8*o.np.params.T_ns
	if cnp.Send && !heard {
		o.rp.cnp(cnp.Ce, uint64(cnp.RecRate)*1e6)
		o.windows++
	}
}

var ackParams = algoAckArgs{
	Rp: algoPcnRpParams{LineRateBps: 40e9, MinRateBps: 1e6, W_min: wOne / 128, W_max: wOne / 8},
	Np: algoPcnNpParams{T_ns: paperTNs, CongestedPermille: paperPermille},
}

// feedbackACKs are of a flow that is congested for a while, and not for a while. TCP's counters wrap.
func feedbackACKs(rnd *rand.Rand, flow uint32, cnps bool) []algoAckStep {
	steps := make([]algoAckStep, 2000)
	s := algoAckStep{Flow: flow}
	s.Ack.NowNs, s.Ack.FrameBytes = startNs, uint32(64+rnd.IntN(9000))
	gapNs, share := uint64(1000), 0
	for i := range steps {
		if i%200 == 0 {
			gapNs, share = 100+rnd.Uint64N(uint64(1)<<(8+rnd.IntN(10))), []int{0, 50, 100}[rnd.IntN(3)]
		}
		s.Ack.NowNs += rnd.Uint64N(gapNs)
		packets := uint32(rnd.IntN(4)) // 0: an ACK of nothing new
		s.Ack.Packets += packets
		for range packets {
			if rnd.IntN(100) < share {
				s.Ack.Marked++
			}
		}
		if cnps && i > 500 && i < 1000 && i%20 == 0 {
			s.Ack.Cnps++
		}
		steps[i] = s
	}
	return steps
}

// The rate follows ACKs as it would follow CNPs, and with auto not while there are any.
func TestFeedbackFromACKs(t *testing.T) {
	b := load(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	ignored := uint32(0)
	for flow := range uint32(60) {
		args := ackParams
		auto := flow%2 == 1
		args.Rp.Feedback = algoPcnFeedbackPCN_FEEDBACK_ACK
		if auto {
			args.Rp.Feedback = algoPcnFeedbackPCN_FEEDBACK_AUTO
		}
		steps := feedbackACKs(rnd, flow, flow%3 > 0)
		qt.Assert(t, qt.IsNil(b.objs.AckFlows.Put(flow, algoAckFlow{})))
		got := append([]algoAckStep(nil), steps...)
		b.ack(t, args, got)
		o := ackOracle{np: npOracle{params: args.Np}, rp: newRPOracle(args.Rp), auto: auto}
		all := ackOracle{np: npOracle{params: args.Np}, rp: newRPOracle(args.Rp)}
		for i, s := range steps {
			o.ack(s)
			all.ack(s)
			want, _ := o.rp.rate.Float64()
			qt.Assert(t, qt.Equals(got[i].Windows, o.windows), qt.Commentf("flow %d, ACK %d", flow, i))
			near(t, float64(got[i].SendRateBps), want, 1e-3*want, "flow %d, ACK %d: rate", flow, i)
		}
		qt.Assert(t, qt.IsTrue(o.windows > 1), qt.Commentf("flow %d: %d windows", flow, o.windows))
		ignored += all.windows - o.windows
	}
	qt.Assert(t, qt.IsTrue(ignored > 100), qt.Commentf("%d windows were ignored for CNPs", ignored))
}

// A link of 10 Gbit/s that marks all packets: the flow comes down to it by one window. Without marks it goes back.
func TestFeedbackFromACKsSettles(t *testing.T) {
	b := load(t)
	args := ackParams
	args.Rp.Feedback = algoPcnFeedbackPCN_FEEDBACK_ACK
	qt.Assert(t, qt.IsNil(b.objs.AckFlows.Put(uint32(0), algoAckFlow{})))
	s := algoAckStep{}
	s.Ack.NowNs, s.Ack.FrameBytes = startNs, 1000
	acks := func(n int, marked bool) algoAckStep {
		steps := make([]algoAckStep, n)
		for i := range steps {
			s.Ack.NowNs += 800 // 1000 bytes at 10 Gbit/s
			s.Ack.Packets++
			if marked {
				s.Ack.Marked++
			}
			steps[i] = s
		}
		b.ack(t, args, steps)
		return steps[n-1]
	}
	near(t, float64(acks(100, true).SendRateBps), 10e9*(1-1./128), 1e7, "rate of a congested flow")
	near(t, float64(acks(4000, false).SendRateBps), 40e9, 2e8, "rate after that")
}
