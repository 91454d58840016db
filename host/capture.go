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
)

// Offsets of a CNP's fields after the Ethernet header, in bytes.
const (
	offEtherType = 12
	ethLen       = 14
	ipv6Len      = 40
	udpDport     = 2
)

// CanCapture fails if CaptureCNPs would, before there is a file to write to.
func CanCapture(interfaces []string) error {
	fd, _, err := openCapture(interfaces)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// openCapture opens a packet socket, and finds the interfaces' numbers by their indices.
func openCapture(interfaces []string) (fd int, index map[int]int, err error) {
	index = map[int]int{}
	for i, name := range interfaces {
		device, err := net.InterfaceByName(name)
		if err != nil {
			return -1, nil, fmt.Errorf("interface %s: %w: see ip link", name, err)
		}
		index[device.Index] = i
	}
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, nil, explainRefusal(fmt.Errorf("open a packet socket: %w", err),
			capability{"CAP_NET_RAW", unix.CAP_NET_RAW, 0})
	}
	return fd, index, nil
}

// CaptureCNPs captures the CNPs that the interfaces receive and send until the context ends, and
// returns their number. The capture must have the same interfaces in the same order. It sees CNPs
// before RP consumes them.
func CaptureCNPs(
	ctx context.Context, interfaces []string, capture *cnp.Capture,
) (n int, err error) {
	const ethPAll = 0x0300 // ETH_P_ALL in network byte order
	fd, index, err := openCapture(interfaces)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ethPAll}); err != nil {
		return 0, fmt.Errorf("listen for packets: %w", err)
	}
	frame := make([]byte, 65536)
	for ctx.Err() == nil {
		const wakeUp = 100 // ms: how soon the context's end is seen
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, wakeUp); err != nil && !errors.Is(err, unix.EINTR) {
			return n, fmt.Errorf("wait for packets: %w", err)
		}
		for {
			length, from, err := unix.Recvfrom(fd, frame, 0)
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if err != nil {
				return n, fmt.Errorf("receive packets: %w", err)
			}
			i, ok := index[from.(*unix.SockaddrLinklayer).Ifindex]
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
