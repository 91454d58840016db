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

// Wire hears the frames that leave a device.
type Wire struct{ fd int }

// NewWire begins to hear.
func NewWire(t testing.TB, e End) *Wire {
	t.Helper()
	w := &Wire{}
	Do(t, e.NS, func() (err error) {
		if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
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

// PaceBps is the median, over the frames that left since the last call, of a frame's bits by the time until the next, in
// bit/s; 0 with fewer than two frames.
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
			t.Fatal("hear frames:", err)
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

// next is the length and time of the next frame; length 0: it did not leave, but came.
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
	return 0, time.Time{}, errors.New("a frame without a time")
}
