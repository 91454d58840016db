// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
)

// send sends frames from a device, as they are.
func send(t *testing.T, from nstest.End, frames ...[]byte) {
	t.Helper()
	nstest.Do(t, from.NS, func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, f := range frames {
			to := &unix.SockaddrLinklayer{Ifindex: from.Index()}
			if err := unix.Sendto(fd, f, 0, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// A capture has the CNPs of both families that its interface receives and sends, byte for byte, and
// none of what only looks like one.
func TestCapture(t *testing.T) {
	here, peer := nstest.Veth(t, nstest.New(t), nstest.New(t),
		netip.MustParsePrefix("10.7.1.1/24"), netip.MustParsePrefix("10.7.1.2/24"))
	frame := func(src, dst string) []byte {
		t.Helper()
		f, err := cnp.CNP{DstMAC: [6]byte(here.MAC), SrcMAC: [6]byte(peer.MAC),
			Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst), Decrease: true,
			RecRateMbps: 1000, FlowSrcPort: 1, FlowDstPort: 2}.MarshalBinary()
		qt.Assert(t, qt.IsNil(err))
		return f
	}
	v4, v6 := frame("10.7.1.2", "10.7.1.1"), frame("fd00::2", "fd00::1")
	const ip, udp = 14, 14 + 20 // offsets in v4
	changed := func(at int) []byte {
		f := bytes.Clone(v4)
		f[at]++
		return f
	}
	others := [][]byte{
		changed(ip + 9),        // another protocol than UDP
		changed(udp + 3),       // another port than RoCEv2's
		changed(udp + 8),       // another opcode than a CNP's
		changed(ip - 1),        // another EtherType than IPv4
		v4[:udp+8],             // it ends before the opcode
		v4[:ip+10],             // within the IP header
		append(v4[:ip:ip], 69), // behind the Ethernet header
	}

	var socket *host.CNPSocket
	nstest.Do(t, here.NS, func() (err error) {
		socket, err = host.ListenCNPs([]string{here.Link.Attrs().Name})
		return err
	})
	t.Cleanup(func() { qt.Check(t, qt.IsNil(socket.Close())) })
	send(t, peer, v4)
	send(t, peer, others...)
	send(t, peer, v6)
	// The kernel takes the tag of a VLAN off what comes in, not off what goes out.
	tagged := slices.Concat(v4[:ip-2], []byte{0x81, 0, 0, 7}, v4[ip-2:])
	send(t, here, tagged, tagged[:ip])

	var file bytes.Buffer
	capture, err := cnp.NewHostCapture(&file, here.Link.Attrs().Name)
	qt.Assert(t, qt.IsNil(err))
	// The microVM's time stands still while something is to be done.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	n, err := socket.Capture(ctx, capture)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(n, 3))
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	qt.Assert(t, qt.IsNil(err))
	for _, want := range [][]byte{v4, v6, tagged} {
		got, _, err := r.ReadPacketData()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(got, want))
	}
	_, _, err = r.ReadPacketData()
	qt.Check(t, qt.ErrorIs(err, io.EOF))
}

func TestCaptureWithoutInterface(t *testing.T) {
	_, err := host.ListenCNPs([]string{"none0"})
	qt.Check(t, qt.ErrorMatches(err, "interface none0: .*: see ip link"))
}
