// SPDX-License-Identifier: Apache-2.0

// Package nstest makes network namespaces and links for tests, and removes them when the test ends.
package nstest

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader/ns"
)

// Patience is how long a test waits for what takes milliseconds, unless the machine is busy: so
// long only a test waits that fails.
const Patience = time.Minute

// RequireRoot skips the test unless root runs it.
func RequireRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make network namespaces and to load BPF programs: run it as root, " +
			"e.g. go test -exec sudo")
	}
}

// New makes a network namespace without addresses. It skips the test unless root runs it.
func New(t testing.TB) netns.NsHandle {
	t.Helper()
	RequireRoot(t)
	h, err := ns.New(quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// quiet stops IPv6 from sending packets of its own on future links.
func quiet() error {
	const none = "1"
	err := os.WriteFile("/proc/sys/net/ipv6/conf/default/addr_gen_mode", []byte(none), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel without IPv6
	}
	return err
}

// Do runs fn in the namespace, and fails the test with its error. fn runs on another goroutine: it
// must not call t.
func Do(t testing.TB, h netns.NsHandle, fn func() error) {
	t.Helper()
	if err := ns.Do(h, fn); err != nil {
		t.Fatal(err)
	}
}

// Sysctl sets net.ipv4.NAME in the namespace.
func Sysctl(t testing.TB, h netns.NsHandle, name, value string) {
	t.Helper()
	Do(t, h, func() error { return os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0) })
}

// Netlink opens a route netlink connection into the namespace.
func Netlink(t testing.TB, h netns.NsHandle) *netlink.Handle {
	t.Helper()
	nl, err := netlink.NewHandleAt(h, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatalf("connect to the netlink of network namespace %s: %v", h, err)
	}
	t.Cleanup(nl.Close)
	return nl
}

// End is one end of a veth pair, in its namespace.
type End struct {
	NS   netns.NsHandle
	Link netlink.Link
	Addr netip.Addr
	MAC  net.HardwareAddr
}

// Index returns the device's index.
func (e End) Index() int { return e.Link.Attrs().Index }

// SentBytes returns the bytes of all frames that the device has sent.
func (e End) SentBytes(t testing.TB) uint64 {
	t.Helper()
	l, err := Netlink(t, e.NS).LinkByIndex(e.Index())
	if err != nil {
		t.Fatal("read the device:", err)
	}
	return l.Attrs().Statistics.TxBytes
}

// AddAddr adds an address to the device.
func (e End) AddAddr(t testing.TB, addr netip.Prefix) {
	t.Helper()
	a := &netlink.Addr{IPNet: ipNet(addr), Flags: unix.IFA_F_NODAD}
	if err := Netlink(t, e.NS).AddrAdd(e.Link, a); err != nil {
		t.Fatalf("add address %s: %v", addr, err)
	}
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Veth connects two namespaces by a veth pair that is up. Both ends know each other's hardware
// address from the start. One skb is one frame, as in the lab, and frames arrive in order.
func Veth(t testing.TB, a, b netns.NsHandle, addrA, addrB netip.Prefix) (End, End) {
	t.Helper()
	const name = "veth0"
	nlA, nlB := Netlink(t, a), Netlink(t, b)
	err := nlA.LinkAdd(&netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: name},
		PeerName:      name,
		PeerNamespace: netlink.NsFd(b),
	})
	if err != nil {
		t.Fatal("add veth pair:", err)
	}
	// A namespace that a socket still holds would keep the pair: delete it here.
	endA, endB := configure(t, nlA, a, name, addrA), configure(t, nlB, b, name, addrB)
	t.Cleanup(func() { nlA.LinkDel(endA.Link) })
	neighbour(t, nlA, endA, endB)
	neighbour(t, nlB, endB, endA)
	waitUp(t, endA) // endB had a peer when it was set up
	return endA, endB
}

func configure(t testing.TB, nl *netlink.Handle, h netns.NsHandle, name string,
	addr netip.Prefix) End {
	t.Helper()
	l, err := nl.LinkByName(name)
	if err != nil {
		t.Fatalf("find device %s: %v", name, err)
	}
	if err := errors.Join(
		nl.LinkSetGSOMaxSegs(l, 1),
		nl.AddrAdd(l, &netlink.Addr{IPNet: ipNet(addr)}),
		nl.LinkSetUp(l),
	); err != nil {
		t.Fatalf("set up device %s: %v", name, err)
	}
	Do(t, h, func() error { return ns.ReceiveOnOneCPU(name) })
	return End{NS: h, Link: l, Addr: addr.Addr(), MAC: l.Attrs().HardwareAddr}
}

func neighbour(t testing.TB, nl *netlink.Handle, e, peer End) {
	t.Helper()
	if err := nl.NeighAdd(&netlink.Neigh{
		LinkIndex:    e.Index(),
		State:        netlink.NUD_PERMANENT,
		IP:           peer.Addr.AsSlice(),
		HardwareAddr: peer.MAC,
	}); err != nil {
		t.Fatalf("add neighbour %s: %v", peer.Addr, err)
	}
}

// waitUp waits until the device is up: before, it drops packets silently.
func waitUp(t testing.TB, e End) {
	t.Helper()
	updates, done := make(chan netlink.LinkUpdate), make(chan struct{})
	err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{
		Namespace: &e.NS, ListExisting: true,
	})
	if err != nil {
		t.Fatal("subscribe to links:", err)
	}
	defer func() {
		close(done)
		// drain until the subscription ends, because its socket holds the namespace
		for range updates {
		}
	}()
	expired := time.After(Patience)
	for {
		select {
		case u := <-updates:
			if int(u.Index) == e.Index() && u.Attrs().OperState == netlink.OperUp {
				return
			}
		case <-expired:
			t.Fatalf("device %s is not up after %v", e.Link.Attrs().Name, Patience)
		}
	}
}

// Netstat returns the sum of these counters of a namespace's TCP and IP, as nstat shows them.
func Netstat(t testing.TB, h netns.NsHandle, group string, names ...string) (sum uint64) {
	t.Helper()
	var text []byte
	Do(t, h, func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/netstat")
		return err
	})
	var fields [][]string // of names, of values
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == group+":" {
			fields = append(fields, f)
		}
	}
	if len(fields) != 2 {
		t.Fatalf("netstat has %d lines of %s: want 2", len(fields), group)
	}
	for _, name := range names {
		i := slices.Index(fields[0], name)
		if i < 0 {
			t.Fatalf("netstat has no counter %s of %s", name, group)
		}
		v, err := strconv.ParseUint(fields[1][i], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// Recoveries returns how often TCP of a namespace took packets for lost: it began a recovery, or
// its timer expired. It counts also where nothing is sent again, as what was late has not left the
// host yet.
func Recoveries(t testing.TB, h netns.NsHandle) uint64 {
	t.Helper()
	return Netstat(t, h, "TcpExt", "TCPRenoRecovery", "TCPSackRecovery", "TCPTimeouts")
}

// Eventually polls for an event in the kernel that sends no notification.
func Eventually(t testing.TB, what string, happened func() bool) {
	t.Helper()
	if !InTime(Patience, happened) {
		t.Fatalf("did not happen within %v: %s", Patience, what)
	}
}

// InTime polls as [Eventually], and reports whether it happened.
func InTime(patience time.Duration, happened func() bool) bool {
	expired := time.After(patience)
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !happened() {
		select {
		case <-poll.C:
		case <-expired:
			return false
		}
	}
	return true
}
