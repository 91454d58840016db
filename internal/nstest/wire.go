// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Wire captures the frames that leave a device.
type Wire struct{ fd int }

// NewWire starts capturing.
func NewWire(t testing.TB, e End) *Wire {
	t.Helper()
	w := &Wire{}
	Do(t, e.NS, func() (err error) {
		if w.fd, err = unix.Socket(unix.AF_PACKET,
			unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		const frames, truesize = 10_000, 4096
		const ethPAll = 0x0300 // ETH_P_ALL in network byte order
		return errors.Join(
			unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, frames*truesize),
			unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.Bind(w.fd, &unix.SockaddrLinklayer{Protocol: ethPAll, Ifindex: e.Index()}),
		)
	})
	t.Cleanup(func() { unix.Close(w.fd) })
	return w
}

// PaceBps returns the median rate in bit/s of the frames since the last call. A frame's rate is its
// bits divided by the time until the next frame. It is 0 for fewer than two frames.
func (w *Wire) PaceBps(t testing.TB) float64 {
	t.Helper()
	var paces []float64
	var last time.Time
	lastBytes := 0
	for {
		n, at, err := w.next()
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			t.Fatal("capture frames:", err)
		}
		if n == 0 {
			continue
		}
		if !last.IsZero() {
			paces = append(paces, float64(lastBytes)*8/at.Sub(last).Seconds())
		}
		last, lastBytes = at, n
	}
	if len(paces) == 0 {
		return 0
	}
	slices.Sort(paces)
	return paces[len(paces)/2]
}

// next returns the length and time of the next frame; the length is 0 for a frame that came in.
func (w *Wire) next() (int, time.Time, error) {
	var oob [128]byte
	n, oobn, _, from, err := unix.Recvmsg(w.fd, make([]byte, 1), oob[:], unix.MSG_TRUNC)
	if err != nil {
		return 0, time.Time{}, err
	}
	if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING {
		return 0, time.Time{}, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return 0, time.Time{}, err
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS {
			at := (*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			return n, time.Unix(at.Unix()), nil
		}
	}
	return 0, time.Time{}, errors.New("a captured frame has no timestamp")
}
