// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader/ns"
)

// The bed: the client's host has two links to the router, the guest one. The router has two to
// the server's host: the bottleneck, and a slow one, on which a few packets overtake no others.
//
//	client eth0 -- a0 router b0 -- eth0 server
//	client eth1 -- a1        b1 -- eth1
//	guest  eth0 -- c0
type bed struct {
	hosts            map[string]*netHost
	fullMbps         int   // the bottleneck's rate when nothing has lowered it
	toServer, toward *path // of the bottleneck, and of what returns to the client's host

	mu      sync.Mutex
	upSince time.Time // zero while the path is down
	eth1    bool      // the client's second device is there
}

type netHost struct {
	name string
	ns   netns.NsHandle
	nl   *netlink.Handle
}

// do runs fn in the host's network namespace.
func (h *netHost) do(fn func() error) error { return ns.Do(h.ns, fn) }

// Addresses: each link has a /24 and a /64 of its number, the router ends with 254.
func address4(link, end int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 71, byte(link), byte(end)}), 24)
}

func address6(link, end int) netip.Prefix {
	a := [16]byte{0xfd, 0x71, 0, byte(link)}
	a[7], a[15] = byte(link), byte(end)
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

const (
	linkClient0, linkServer, linkSlow, linkClient1, linkGuest = 1, 2, 3, 4, 5
	endHost, endRouter                                        = 1, 254
)

// server returns the server's address.
func server(ipv6 bool) netip.Addr {
	if ipv6 {
		return address6(linkServer, endHost).Addr()
	}
	return address4(linkServer, endHost).Addr()
}

func newHost(name string) (*netHost, error) {
	h := &netHost{name: name}
	var err error
	h.ns, err = ns.New(func() error {
		return errors.Join(
			sysctl("ipv6/conf/default/accept_dad", "0"), sysctl("ipv6/conf/all/accept_dad", "0"),
			sysctl("ipv6/conf/default/keep_addr_on_down", "1"),
			sysctl("ipv6/conf/all/keep_addr_on_down", "1"),
			sysctl("ipv4/conf/default/rp_filter", "0"), sysctl("ipv4/conf/all/rp_filter", "0"),
		)
	})
	if err != nil {
		return nil, fmt.Errorf("make host %s: %w", name, err)
	}
	if h.nl, err = netlink.NewHandleAt(h.ns, unix.NETLINK_ROUTE); err != nil {
		return nil, err
	}
	return h, h.setUp("lo")
}

func sysctl(name, value string) error {
	return os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value),
		0o644)
}

func (h *netHost) setUp(device string) error {
	l, err := h.nl.LinkByName(device)
	if err != nil {
		return fmt.Errorf("%s: device %s: %w", h.name, device, err)
	}
	return h.nl.LinkSetUp(l)
}

func (h *netHost) close() {
	h.nl.Close()
	_ = h.ns.Close()
}

// buildBed makes the hosts and their links. All of it goes with this process.
func buildBed(fullMbps int) (*bed, error) {
	b := &bed{hosts: map[string]*netHost{}, fullMbps: fullMbps, upSince: time.Now()}
	for _, name := range []string{clientHost, routerHost, serverHost} {
		h, err := newHost(name)
		if err != nil {
			return nil, err
		}
		b.hosts[name] = h
	}
	router := b.hosts[routerHost]
	err := router.do(func() error {
		return errors.Join(sysctl("ipv4/ip_forward", "1"), sysctl("ipv6/conf/all/forwarding", "1"))
	})
	if err != nil {
		return nil, fmt.Errorf("make the router forward: %w", err)
	}
	err = errors.Join(
		b.connect(clientHost, "eth0", "a0", linkClient0, 0),
		b.connect(serverHost, "eth0", "b0", linkServer, 0x71),
		b.connect(serverHost, "eth1", "b1", linkSlow, 0x71),
		b.addDevice(),
		b.addGuest(),
	)
	if err != nil {
		return nil, err
	}
	if err := b.setUpPaths(); err != nil {
		return nil, err
	}
	return b, errors.Join(b.route(clientHost, linkClient0, 100),
		b.route(clientHost, linkClient1, 200), b.route(serverHost, linkServer, 100))
}

// connect joins a host's device to one of the router. A mac that is not 0 is the last byte of both
// links' hardware addresses, which are then the same on links with the same mac.
func (b *bed) connect(host, device, peer string, link int, mac byte) error {
	h, r := b.hosts[host], b.hosts[routerHost]
	v := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: device}, PeerName: peer,
		PeerNamespace: netlink.NsFd(r.ns),
	}
	if mac != 0 {
		v.HardwareAddr = net.HardwareAddr{2, 0, 0, 0, 0, mac}
		v.PeerHardwareAddr = net.HardwareAddr{2, 0, 0, 0, 1, mac}
	}
	if err := h.nl.LinkAdd(v); err != nil {
		return fmt.Errorf("link %s of %s to the router: %w", device, host, err)
	}
	return errors.Join(configure(h, device, link, endHost), configure(r, peer, link, endRouter))
}

func configure(h *netHost, device string, link, end int) error {
	l, err := h.nl.LinkByName(device)
	if err != nil {
		return err
	}
	for _, p := range []netip.Prefix{address4(link, end), address6(link, end)} {
		a := &netlink.Addr{IPNet: ipNet(p), Flags: unix.IFA_F_NODAD}
		if err := h.nl.AddrAdd(l, a); err != nil {
			return fmt.Errorf("add address %s to %s of %s: %w", p, device, h.name, err)
		}
	}
	return h.nl.LinkSetUp(l)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{
		IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
	}
}

// route sends a host's packets by one of its links; the lowest metric wins.
func (b *bed) route(host string, link, metric int) error {
	h := b.hosts[host]
	device := "eth0"
	if link == linkClient1 {
		device = "eth1"
	}
	l, err := h.nl.LinkByName(device)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		to  string
		via netip.Prefix
	}{{"10.71.0.0/16", address4(link, endRouter)}, {"fd71::/16", address6(link, endRouter)}} {
		_, to, err := net.ParseCIDR(r.to)
		if err != nil {
			return err
		}
		if err := h.nl.RouteReplace(&netlink.Route{
			LinkIndex: l.Attrs().Index, Dst: to, Gw: r.via.Addr().AsSlice(), Priority: metric,
		}); err != nil {
			return fmt.Errorf("route %s of %s: %w", r.to, host, err)
		}
	}
	return nil
}

// routeBy makes the client's packets leave by eth0 or eth1, if that is there.
func (b *bed) routeBy(eth1 int) error {
	if !b.hasEth1() {
		return nil
	}
	if err := b.unroute(linkClient1); err != nil {
		return err
	}
	return b.route(clientHost, linkClient1, 200-150*eth1)
}

// unroute removes the client's routes by a link.
func (b *bed) unroute(link int) error {
	h := b.hosts[clientHost]
	for family, via := range map[int]netip.Prefix{
		unix.AF_INET: address4(link, endRouter), unix.AF_INET6: address6(link, endRouter),
	} {
		routes, err := h.nl.RouteList(nil, family)
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.Gw.Equal(via.Addr().AsSlice()) {
				if err := h.nl.RouteDel(&r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *bed) hasEth1() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.eth1
}

func (b *bed) setEth1(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eth1 = is
}

// addDevice gives the client's host eth1.
func (b *bed) addDevice() error {
	if err := b.connect(clientHost, "eth1", "a1", linkClient1, 0); err != nil {
		return err
	}
	b.setEth1(true)
	return nil
}

// removeDevice takes eth1 away.
func (b *bed) removeDevice() error {
	h := b.hosts[clientHost]
	l, err := h.nl.LinkByName("eth1")
	if err != nil {
		return err
	}
	b.setEth1(false)
	return h.nl.LinkDel(l)
}

// addGuest makes the guest, whose namespace chooses pcn as soon as it is there.
func (b *bed) addGuest() error {
	h, err := newHost(guestHost)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.hosts[guestHost] = h
	b.mu.Unlock()
	if err := b.connect(guestHost, "eth0", "c0", linkGuest, 0); err != nil {
		return err
	}
	return b.route(guestHost, linkGuest, 100)
}

// removeGuest deletes the guest's link and gives its namespace up, which goes with its last socket.
func (b *bed) removeGuest() error {
	b.mu.Lock()
	h := b.hosts[guestHost]
	delete(b.hosts, guestHost)
	b.mu.Unlock()
	l, err := h.nl.LinkByName("eth0")
	if err == nil {
		err = h.nl.LinkDel(l)
	}
	h.close()
	return err
}

// host returns a host; nil while the guest is not there.
func (b *bed) host(name string) *netHost {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hosts[name]
}

// up reports since when the path is up; zero if it is not.
func (b *bed) up() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.upSince
}

// downWithin reports whether the path is down, or has come up within the time.
func (b *bed) downWithin(d time.Duration) bool {
	up := b.up()
	return up.IsZero() || time.Since(up) < d
}

func (b *bed) setUpSince(t time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.upSince = t
}

// flap takes the bottleneck's link down for a time.
func (b *bed) flap(down time.Duration) error {
	r := b.hosts[routerHost]
	l, err := r.nl.LinkByName("b0")
	if err != nil {
		return err
	}
	b.setUpSince(time.Time{})
	if err := r.nl.LinkSetDown(l); err != nil {
		return err
	}
	time.Sleep(down)
	if err := r.nl.LinkSetUp(l); err != nil {
		return err
	}
	// The server's routes went with its carrier, or with its device's state.
	err = b.route(serverHost, linkServer, 100)
	b.setUpSince(time.Now())
	return err
}

// mtu changes the bottleneck's, at both ends.
func (b *bed) mtu(bytes int) error {
	for host, device := range map[string]string{routerHost: "b0", serverHost: "eth0"} {
		h := b.hosts[host]
		l, err := h.nl.LinkByName(device)
		if err != nil {
			return err
		}
		if err := h.nl.LinkSetMTU(l, bytes); err != nil {
			return fmt.Errorf("set the MTU of %s of %s: %w", device, host, err)
		}
	}
	return nil
}
