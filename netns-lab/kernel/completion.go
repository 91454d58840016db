// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/netns-lab/result"
)

// stampCompletion has the kernel note when the last byte of each write to come is acknowledged. Arrivals of ACKs
// would not tell it: some are for packets that were sent twice.
func (s *stream) stampCompletion() error {
	err := setOptions(s.raw, option{
		unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
		unix.SOF_TIMESTAMPING_TX_ACK | unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_TSONLY,
	})
	if err != nil {
		return fmt.Errorf("ask for the time of completion: %w", err)
	}
	return nil
}

// completedNs is when the last byte was acknowledged, on the papers' clock and as late as the ACK was; 0: not yet.
func (s *stream) completedNs(c clock) (uint64, error) {
	var wallNs uint64
	var err error
	if cerr := s.raw.Control(func(fd uintptr) { wallNs, err = lastStampNs(int(fd)) }); cerr != nil {
		return 0, cerr
	}
	if err != nil {
		return 0, fmt.Errorf("read the time of completion: %w", err)
	}
	if wallNs == 0 {
		return 0, nil
	}
	return c.ofWall(wallNs), nil
}

// lastStampNs takes all time stamps that a socket has, and returns the last; 0: it has none.
func lastStampNs(fd int) (uint64, error) {
	var last uint64
	oob := make([]byte, 512)
	for {
		_, n, _, _, err := unix.Recvmsg(fd, nil, oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		messages, err := unix.ParseSocketControlMessage(oob[:n])
		if err != nil {
			return 0, err
		}
		for _, m := range messages {
			// struct scm_timestamping: the first of three timespecs is the kernel's
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPING && len(m.Data) >= 16 {
				last = max(last, binary.NativeEndian.Uint64(m.Data)*1e9+binary.NativeEndian.Uint64(m.Data[8:]))
			}
		}
	}
}

// completions are those of the flows with a size.
func (c *collector) completions() []result.Completion {
	var rows []result.Completion
	for i, s := range c.t.streams {
		if s.Size == 0 {
			continue
		}
		row := result.Completion{
			Flow: s.Name, Group: s.Group, Src: s.From, Dst: s.To, Priority: s.Priority, SizeBytes: uint64(s.Size), StartNs: c.since(s.startNs),
			IdealNs: c.f.plan.idealNs(s.From, s.To, uint64(s.Size)),
		}
		if at := c.senders[i].completedNs; at != 0 {
			row.FCTNs = new(int64(at - s.startNs))
		}
		rows = append(rows, result.NewCompletion(row))
	}
	return rows
}

// idealNs is how long a flow takes that is alone and sends at line rate, until its sender has the last ACK. Switches
// forward whole packets.
func (p *plan) idealNs(from, to string, size uint64) int64 {
	const header = ethHeader + tcpIPHeader
	a, b := p.host(from), p.host(to)
	path := p.paths.Path(a, b)
	frame := uint64(p.exp.Frame)
	payload := frame - header
	full := (size - 1) / payload // frames before the last
	last := size - full*payload + header

	// at is when the last frame has left each link, of which free is when it can start to
	var at, slowest, first, ack float64
	for _, l := range path {
		nsPerByte := 8e9 / float64(l.RateBps)
		slowest = max(slowest, float64(frame)*nsPerByte)
		first += float64(frame) * nsPerByte
		free := 0.0
		if full > 0 {
			free = first + float64(full-1)*slowest
		}
		at = max(at, free) + float64(last)*nsPerByte
		ack += header * nsPerByte
	}
	return int64(math.Round(at+ack)) + int64(p.paths.DelayNs(a, b)) + int64(p.paths.DelayNs(b, a))
}
