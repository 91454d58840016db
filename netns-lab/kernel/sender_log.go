// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/loader"
)

const tcpInfoECN = 8 // TCPI_OPT_ECN

// senderLog samples the state of TCP senders.
type senderLog struct {
	control  *loader.Control
	pacing   pacing
	frame    uint64 // bytes
	dilation uint
	watched  []*stream                  // senders that are sampled in every bin
	bins     []map[uint64]result.Sample // by stream, then bin
}

// senderState is the state of a stream's sender.
type senderState struct {
	flow            loader.Flow
	sentBytes       uint64
	ackedBytes      uint64 // and SYN and FIN
	cwndPackets     uint64 // 0: the control has a rate
	srttNs          int64
	retransmissions uint64
	timeouts        uint64
	completedNs     uint64 // the last ACK's time on the papers' clock; 0: not completed
	ecn             bool
}

func newSenderLog(f *fabric, streams []*stream) *senderLog {
	l := &senderLog{
		control: f.control, pacing: newPacing(f), frame: uint64(f.plan.exp.Frame),
		dilation: f.plan.exp.Dilation.Shift, bins: byBin[result.Sample](len(streams)),
	}
	all := len(streams) <= experiment.MaxInSeries || f.plan.exp.Switch.Detectors
	needed := f.plan.exp.SentSeries()
	for _, s := range streams {
		if all || needed[s.Name] {
			l.watched = append(l.watched, s)
		}
	}
	return l
}

// sample records the state of the watched senders at the end of a bin.
func (l *senderLog) sample(bin uint64) error {
	for _, s := range l.watched {
		x, err := l.read(s)
		if err != nil {
			return err
		}
		l.bins[s.id][bin] = result.Sample{
			RateBps: l.rateBps(s, &x), CwndPackets: x.cwndPackets, SRTTNs: x.srttNs,
			CNPs: x.flow.CNPDecrease + x.flow.CNPIncrease,
		}
	}
	return nil
}

// rateBps returns the sender's pacing rate, or its window divided by the round trip.
func (l *senderLog) rateBps(s *stream, x *senderState) uint64 {
	switch {
	case l.pacing.hasRate(s):
		return x.flow.SendRateBps
	case l.pacing.isLine(s) || x.srttNs == 0:
		return 0
	default:
		return x.cwndPackets * l.frame * 8e9 / uint64(x.srttNs)
	}
}

func (l *senderLog) read(s *stream) (senderState, error) {
	info, err := s.tcpInfo()
	if err != nil {
		return senderState{}, err
	}
	out := senderState{
		sentBytes:       info.Bytes_sent - info.Bytes_retrans - s.primed,
		ackedBytes:      info.Bytes_acked - s.primed,
		srttNs:          int64(info.Rtt) * 1000 >> l.dilation,
		retransmissions: uint64(info.Total_retrans),
		timeouts:        uint64(info.Total_rto),
		ecn:             info.Options&tcpInfoECN != 0,
	}
	if !l.pacing.hasRate(s) && !l.pacing.isLine(s) {
		out.cwndPackets = uint64(info.Snd_cwnd)
	}
	// there is no more state without a flow table, or after the flow's end
	out.flow, err = l.control.Flow(s.key)
	if err != nil && !errors.Is(err, loader.ErrNoFlow) {
		return senderState{}, err
	}
	return out, nil
}

// rows returns the bins of a stream's sender.
func (l *senderLog) rows(s *stream, w window) []result.Sample {
	var rows []result.Sample
	first, end := w.bins()
	for bin := first; bin < end; bin++ {
		sample, ok := l.bins[s.id][bin]
		if !ok {
			continue
		}
		sample.TimeNs = w.since(bin * w.sampleNs)
		sample.Kind, sample.Name = result.KindSender, s.Name
		rows = append(rows, sample)
	}
	return rows
}
