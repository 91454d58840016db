// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/host/internal/rights"
)

// Offsets of a CNP's fields after the Ethernet header, in bytes.
const (
	offEtherType = 12
	ethLen       = 14
	ipv6Len      = 40
	udpDport     = 2
)

// CNPSocket hears what interfaces receive and send.
type CNPSocket struct {
	fd    int
	index map[int]int // of the interface in the capture, by the kernel's number
}

// ListenCNPs opens a socket that hears what the interfaces receive and send. It needs no file to
// write to yet: what can fail for want of rights or of an interface fails here.
func ListenCNPs(interfaces []string) (*CNPSocket, error) {
	const ethPAll = 0x0300 // ETH_P_ALL in network byte order
	index := map[int]int{}
	for i, name := range interfaces {
		device, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("interface %s: %w: see ip link", name, err)
		}
		index[device.Index] = i
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, rights.Explain(fmt.Errorf("open a packet socket: %w", err),
			rights.Raw)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ethPAll}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen for packets: %w", err)
	}
	return &CNPSocket{fd, index}, nil
}

// Close closes the socket.
func (s *CNPSocket) Close() error { return unix.Close(s.fd) }

// Capture captures the CNPs since the socket was opened, until the context ends, and returns their
// number. The capture must have the socket's interfaces in the same order. It sees CNPs before RP
// consumes them.
func (s *CNPSocket) Capture(ctx context.Context, capture *cnp.Capture) (n int, err error) {
	frame := make([]byte, 65536)
	for ctx.Err() == nil {
		const wakeUp = 100 // ms: how soon the context's end is seen
		fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, wakeUp); err != nil && !errors.Is(err, unix.EINTR) {
			return n, fmt.Errorf("wait for packets: %w", err)
		}
		for {
			length, from, err := unix.Recvfrom(s.fd, frame, 0)
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if err != nil {
				return n, fmt.Errorf("receive packets: %w", err)
			}
			i, ok := s.index[from.(*unix.SockaddrLinklayer).Ifindex]
			if !ok || !isCNP(frame[:length]) {
				continue
			}
			if err := capture.WriteFrame(i, time.Now().UnixNano(), frame[:length]); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, capture.Flush()
}

// isCNP reports whether the frame is a RoCEv2 CNP, of PCN or of another implementation.
func isCNP(frame []byte) bool {
	if len(frame) < ethLen {
		return false
	}
	at := offEtherType
	kind := binary.BigEndian.Uint16(frame[at:])
	const vlan = 0x8100
	if kind == vlan && len(frame) >= ethLen+4 {
		at += 4
		kind = binary.BigEndian.Uint16(frame[at:])
	}
	ip := frame[at+2:]
	var l4 int
	switch {
	case kind == unix.ETH_P_IP && len(ip) >= 20 && ip[9] == unix.IPPROTO_UDP:
		l4 = int(ip[0]&15) * 4
	case kind == unix.ETH_P_IPV6 && len(ip) >= ipv6Len && ip[6] == unix.IPPROTO_UDP:
		l4 = ipv6Len
	default:
		return false
	}
	const bth = 8 // length of the UDP header
	return len(ip) > l4+bth && binary.BigEndian.Uint16(ip[l4+udpDport:]) == cnp.UDPPort &&
		ip[l4+bth] == cnp.Opcode
}
