// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
)

// captures record the packets of hosts' devices: the kernel keeps them until they are read at the
// end, as nobody is to be woken by each.
type captures struct {
	hosts []string
	fds   []int
}

// captureBytes is how much the kernel keeps of a host's packets.
const captureBytes = 128 << 20

// newCaptures starts recording.
func newCaptures(f *fabric) (*captures, error) {
	c := &captures{}
	for _, name := range f.plan.exp.Captures {
		host := f.plan.number[name]
		ifindex := f.links.ifindex[f.plan.nodes[host].ports[0]]
		err := f.nodes[host].do(func() error {
			fd, err := openCapture(ifindex)
			if err == nil {
				c.hosts, c.fds = append(c.hosts, name), append(c.fds, fd)
			}
			return err
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("record packets of host %s: %w", name, err),
				c.close())
		}
	}
	return c, nil
}

func openCapture(ifindex int) (int, error) {
	all := uint16(unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8) // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBytes),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifindex}),
	)
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func (c *captures) close() error {
	var errs []error
	for _, fd := range c.fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// read returns what was recorded, as pcapng by host, with times from t0Ns of the lab's clock.
func (c *captures) read(k clock, t0Ns uint64) (map[string][]byte, error) {
	all := map[string][]byte{}
	for i, fd := range c.fds {
		var text bytes.Buffer
		w, err := cnp.NewCapture(&text, c.hosts[i])
		if err != nil {
			return nil, err
		}
		err = eachFrame(fd, func(wallNs uint64, frame []byte) error {
			return w.WriteFrame(0, int64(k.fromWallNs(wallNs))-int64(t0Ns), frame)
		})
		if err := errors.Join(err, w.Flush()); err != nil {
			return nil, fmt.Errorf("read packets of host %s: %w", c.hosts[i], err)
		}
		all[c.hosts[i]] = text.Bytes()
	}
	return all, nil
}

// eachFrame calls fn for each frame that a socket has kept. It fails if there were more.
func eachFrame(fd int, fn func(wallNs uint64, frame []byte) error) error {
	frame, control := make([]byte, 1<<16), make([]byte, 256)
	for {
		n, oob, _, _, err := unix.Recvmsg(fd, frame, control, 0)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			return err
		}
		messages, err := unix.ParseSocketControlMessage(control[:oob])
		if err != nil {
			return err
		}
		for _, m := range messages {
			if m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
				seconds := binary.NativeEndian.Uint64(m.Data)
				ns := seconds*uint64(time.Second) + binary.NativeEndian.Uint64(m.Data[8:])
				if err := fn(ns, frame[:n]); err != nil {
					return err
				}
			}
		}
	}
	stats := unix.TpacketStats{}
	size := uint32(unsafe.Sizeof(stats))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_PACKET,
		unix.PACKET_STATISTICS, uintptr(unsafe.Pointer(&stats)), uintptr(unsafe.Pointer(&size)), 0)
	if errno == 0 && stats.Drops > 0 {
		return fmt.Errorf("%d packets found no room in %d MiB: record fewer hosts, or a "+
			"shorter run",
			stats.Drops, captureBytes>>20)
	}
	return nil
}
