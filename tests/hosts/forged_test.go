// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
)

var forgedFlag = flag.Int("forged", 20_000, "how many forged CNPs each attacker sends")

// Who knows a flow's addresses and ports, and has not seen its packets, changes it by none of many
// forged CNPs: a user of the receiver's host without rights, a neighbour on the sender's link, and
// one in another VLAN. There are no keys.
func TestForgedCNPs(t *testing.T) {
	const mbps = 20
	for _, attack := range []struct {
		name  string
		start func(*Bed, Connection) attacker
		cause string // for which RP drops them; empty: NP does at the receiver
	}{
		{"local user", (*Bed).localUser, ""},
		{"neighbour", func(b *Bed, c Connection) attacker { return b.neighbour(c, 0) }, "unseen"},
		{"other VLAN", func(b *Bed, c Connection) attacker { return b.neighbour(c, 20) }, "unseen"},
	} {
		t.Run(attack.name, func(t *testing.T) {
			m, err := parseMeasurement(fmt.Sprintf(
				"offloads=none senders=1 rate=%dMbps t=5ms", mbps))
			qt.Assert(t, qt.IsNil(err))
			b := New(t, m.Options)
			control := b.Control("pcn", m.network(), m.parameters())
			c := b.Connect(0, "pcn")
			var received atomic.Uint64
			go fill(t.Context(), c)
			go drain(c, &received)
			wait(t.Context(), time.Second)

			// What else the machine does only lowers goodput: the best of some rounds counts.
			const mostRounds = 8
			before, heardOf, lost := control.RPCounts(), control.NPCounts(), b.lostToSender()
			forged := attack.start(b, c)
			alone, attacked, sentForged := 0., 0., 0
			isNear := func() bool { return attacked > 0.98*alone && attacked < 1.02*alone }
			for i := 0; i == 0 || i < mostRounds && !isNear(); i++ {
				alone = max(alone, goodput(&received, func() { wait(t.Context(), 2*time.Second) }))
				attacked = max(attacked, goodput(&received, func() { forged.send(t, *forgedFlag) }))
				sentForged += *forgedFlag
			}
			t.Logf("%.2f Mbit/s alone, %.2f attacked", alone/1e6, attacked/1e6)
			qt.Check(t, qt.IsTrue(isNear()))
			refused := func() uint64 {
				if attack.cause == "" {
					return control.NPCounts()["forged"] - heardOf["forged"]
				}
				return control.RPCounts()[attack.cause] - before[attack.cause] +
					b.lostToSender() - lost
			}
			nstest.Eventually(t, "all are refused", func() bool {
				return refused() >= uint64(sentForged)
			})
			// it takes what NP sent, and no more
			taken := func() uint64 {
				n := control.RPCounts()
				return n["cnp_decrease"] + n["cnp_increase"] + n["rise_limited"] + n["rate_limited"]
			}
			genuine := func() uint64 {
				n := control.NPCounts()
				return n["cnp_decrease"] + n["cnp_increase"]
			}
			sent := genuine()
			nstest.Eventually(t, "what NP sent is taken", func() bool {
				return taken()+b.lostToSender() >= sent
			})
			took := taken()
			sent = genuine()
			qt.Check(t, qt.IsTrue(took <= sent), qt.Commentf("%d of %d", took, sent))
			t.Logf("%d forged: %v", sentForged, control.RPCounts())
		})
	}
}

// lostToSender is how many frames to the first sender a busy machine had no room for.
func (b *Bed) lostToSender() uint64 {
	b.t.Helper()
	port, err := nstest.Netlink(b.t, b.router).LinkByName("port1")
	b.ok(err)
	return port.Attrs().Statistics.TxDropped
}

// goodput is what arrives while do runs, in bit/s.
func goodput(received *atomic.Uint64, do func()) float64 {
	began, before := time.Now(), received.Load()
	do()
	return 8 * float64(received.Load()-before) / time.Since(began).Seconds()
}

// attacker sends CNPs in the name of a connection's receiver.
type attacker struct {
	ns    netns.NsHandle
	open  func() (fd int, err error)
	bytes func(cnp.CNP) []byte
	of    Connection
}

// send sends so many, half of which ask for less, over two seconds at least.
func (a attacker) send(t *testing.T, count int) {
	t.Helper()
	const least = 2 * time.Second
	local, remote := addrPort(a.of.Sender.LocalAddr()), addrPort(a.of.Sender.RemoteAddr())
	rnd := rand.New(rand.NewPCG(7, 8))
	var fd int
	nstest.Do(t, a.ns, func() (err error) {
		fd, err = a.open()
		return err
	})
	defer unix.Close(fd)
	began := time.Now()
	for i := range count {
		forged := cnp.CNP{Src: remote.Addr(), Dst: local.Addr(), FlowSrcPort: local.Port(),
			FlowDstPort: remote.Port(), Decrease: i%2 == 0}
		if forged.Decrease {
			forged.RecRateMbps = 1
		}
		forged.Saw(rnd.Uint32(), rnd.Uint32())
		for {
			_, err := unix.Write(fd, a.bytes(forged))
			if err == nil {
				break
			}
			qt.Assert(t, qt.ErrorIs(err, syscall.ENOBUFS)) // the device's queue is full
		}
		due := began.Add(least * time.Duration(i) / time.Duration(count))
		wait(context.Background(), time.Until(due))
	}
}

// neighbour sends frames at the router's port to the connection's sender; vlan 0: without tag.
func (b *Bed) neighbour(c Connection, vlan uint16) attacker {
	b.t.Helper()
	port, err := nstest.Netlink(b.t, b.router).LinkByName("port1")
	b.ok(err)
	return attacker{ns: b.router, of: c, open: func() (int, error) {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: port.Attrs().Index})
	}, bytes: func(one cnp.CNP) []byte {
		copy(one.DstMAC[:], b.senders[0].link.Attrs().HardwareAddr)
		copy(one.SrcMAC[:], port.Attrs().HardwareAddr)
		frame, err := one.MarshalBinary()
		b.ok(err)
		if vlan == 0 {
			return frame
		}
		const addresses = 12
		tag := []byte{0x81, 0, byte(vlan >> 8), byte(vlan)}
		return append(frame[:addresses:addresses], append(tag, frame[addresses:]...)...)
	}}
}

// localUser sends datagrams by a socket of the receiver's host.
func (b *Bed) localUser(c Connection) attacker {
	const headers, dscpAndCE = 14 + 20 + 8, cnp.DSCP<<2 | 3
	return attacker{ns: b.receiver.ns, of: c, open: func() (int, error) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		to := netip.AddrPortFrom(b.senders[0].addr, cnp.UDPPort)
		return fd, firstError(
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, dscpAndCE),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1),
			unix.Bind(fd, &unix.SockaddrInet4{Port: udpSource(c)}),
			unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}))
	}, bytes: func(one cnp.CNP) []byte {
		frame, err := one.MarshalBinary()
		b.ok(err)
		return frame[headers:]
	}}
}

// udpSource is the port from which CNPs of a connection come.
func udpSource(c Connection) int {
	return 0xc000 | int((addrPort(c.Sender.LocalAddr()).Port()^
		addrPort(c.Sender.RemoteAddr()).Port())&0x3fff)
}

func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
