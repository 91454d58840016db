// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/socket"
)

const receiveBuffer = 16 << 20 // bytes

// buffers holds the sizes of sockets' buffers, in bytes.
type buffers struct {
	send  int
	lowat int // a reader wakes up once per this many bytes, not per packet
}

// buffersFor divides the memory for buffers among the flows.
func buffersFor(flows int) buffers {
	const (
		sendMost, sendLeast, sendAll    = 4 << 20, 256 << 10, 256 << 20
		lowatMost, lowatLeast, lowatAll = 256 << 10, 16 << 10, 16 << 20
	)
	flows = max(flows, 1)
	return buffers{
		send:  min(max(sendAll/flows, sendLeast), sendMost),
		lowat: min(max(lowatAll/flows, lowatLeast), lowatMost),
	}
}

// allowFiles raises the limit of open files for this many.
func allowFiles(files int) error {
	const others = 4096 // namespaces, programs, maps
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	want := uint64(files + others)
	if l.Cur >= want {
		return nil
	}
	l.Cur, l.Max = want, max(l.Max, want)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("raise the limit of open files to %d, for as many flows: %w", want, err)
	}
	return nil
}

// option is a socket option of integer value.
type option struct{ level, name, value int }

func setOptions(c syscall.RawConn, options ...option) error {
	return socket.Do(c, func(fd int) error {
		for _, o := range options {
			if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
				return fmt.Errorf("set socket option %d/%d to %d: %w",
					o.level, o.name, o.value, err)
			}
		}
		return nil
	})
}

// setMaxPacing sets SO_MAX_PACING_RATE, which counts payload.
func setMaxPacing(c syscall.RawConn, bytesPerS uint64) error {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], bytesPerS)
	return socket.Do(c, func(fd int) error {
		err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, string(b[:]))
		if err != nil {
			return fmt.Errorf("set SO_MAX_PACING_RATE: %w", err)
		}
		return nil
	})
}

// setDepartureTimes makes a socket take a departure time with each packet, on the monotonic clock.
func setDepartureTimes(c syscall.RawConn) error {
	var txtime [8]byte // struct sock_txtime: clockid, flags
	binary.NativeEndian.PutUint32(txtime[:], unix.CLOCK_MONOTONIC)
	return socket.Do(c, func(fd int) error {
		err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_TXTIME, string(txtime[:]))
		if err != nil {
			return fmt.Errorf("set SO_TXTIME: %w", err)
		}
		return nil
	})
}

// departureTime returns the control message that sets a packet's departure time.
func departureTime(kernelNs uint64) []byte {
	oob := make([]byte, unix.CmsgSpace(8))
	// struct cmsghdr of a 64-bit machine: length, level, type
	binary.NativeEndian.PutUint64(oob, uint64(unix.CmsgLen(8)))
	binary.NativeEndian.PutUint32(oob[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(oob[12:], unix.SCM_TXTIME)
	binary.NativeEndian.PutUint64(oob[unix.CmsgLen(0):], kernelNs)
	return oob
}

// discard reads until the end without copying, and calls see whenever it has read all that is
// there: with the number of bytes since the last call.
func discard(c *net.TCPConn, see func(fd, n int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	for end := false; !end; {
		var rerr error
		if err := raw.Read(func(fd uintptr) bool {
			var n int
			if n, end, rerr = discardAvailable(int(fd)); rerr == nil {
				rerr = see(int(fd), n)
			}
			return end || rerr != nil
		}); err != nil {
			return err
		}
		switch {
		case errors.Is(rerr, unix.ECONNRESET):
			return nil
		case rerr != nil:
			return os.NewSyscallError("recv", rerr)
		}
	}
	return nil
}

// discardAvailable discards what a socket has received. It returns how many bytes that was, and
// whether the stream has ended.
func discardAvailable(fd int) (bytes int, end bool, err error) {
	for {
		n, err := recvTrunc(fd)
		switch {
		case err == unix.EAGAIN:
			return bytes, false, nil
		case err != nil:
			return bytes, false, err
		case n == 0:
			return bytes, true, nil
		}
		bytes += n
	}
}

// recvTrunc discards up to 1 MiB from a TCP socket inside the kernel: with MSG_TRUNC nothing is
// copied.
func recvTrunc(fd int) (int, error) {
	n, _, errno := unix.Syscall6(
		unix.SYS_RECVFROM, uintptr(fd), 0, 1<<20, unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
