// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/socket"
)

// stampCompletion makes the kernel note when the last byte of each later write is acknowledged.
// Arrival times of ACKs would be wrong, because some ACKs are for packets that were sent twice.
func (s *stream) stampCompletion() error {
	err := setOptions(s.raw, option{
		unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
		unix.SOF_TIMESTAMPING_TX_ACK | unix.SOF_TIMESTAMPING_SOFTWARE |
			unix.SOF_TIMESTAMPING_OPT_TSONLY,
	})
	if err != nil {
		return fmt.Errorf("ask for the time of completion: %w", err)
	}
	return nil
}

// completedNs returns when the last byte was acknowledged, on the papers' clock, including the
// ACK's lateness; 0 before that.
func (s *stream) completedNs(c clock) (uint64, error) {
	var wallNs uint64
	if err := socket.Do(s.raw, func(fd int) (err error) {
		wallNs, err = lastStampNs(fd)
		return err
	}); err != nil {
		return 0, fmt.Errorf("read the time of completion: %w", err)
	}
	if wallNs == 0 {
		return 0, nil
	}
	return c.fromWallNs(wallNs), nil
}

// lastStampNs reads all time stamps of a socket and returns the last; 0 if there is none.
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
			last = max(last, stampNs(&m))
		}
	}
}

// stampNs returns the kernel's time stamp of a control message; 0: it has none.
func stampNs(m *unix.SocketControlMessage) uint64 {
	// struct scm_timestamping: the first of three timespecs is the kernel's
	h := m.Header
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SCM_TIMESTAMPING || len(m.Data) < 16 {
		return 0
	}
	return binary.NativeEndian.Uint64(m.Data)*1e9 + binary.NativeEndian.Uint64(m.Data[8:])
}

// idealNs returns the completion time of a flow that is alone and sends at line rate, up to its
// last ACK. Switches store and forward, and each port rounds times down to the ns.
func (p *plan) idealNs(from, to string, size uint64) int64 {
	const header = ethHeader + tcpIPHeader
	a, b := p.host(from), p.host(to)
	path := p.paths.Path(a, b)
	frame := uint64(p.exp.Frame)
	payload := frame - header
	full := (size - 1) / payload // frames before the last
	last := size - full*payload + header

	// at is when the last frame has left a link, free when the link was free for it
	var at, slowest, first, ack float64
	for _, l := range path {
		nsPerByte := 8e9 / float64(l.RateBps)
		slowest = max(slowest, float64(frame)*nsPerByte)
		first = math.Floor(first + float64(frame)*nsPerByte)
		free := 0.0
		if full > 0 {
			free = first + float64(full-1)*slowest
		}
		at = math.Floor(max(at, free) + float64(last)*nsPerByte)
		ack = math.Floor(ack + header*nsPerByte)
	}
	return int64(at+ack) + int64(p.paths.DelayNs(a, b)) + int64(p.paths.DelayNs(b, a))
}
