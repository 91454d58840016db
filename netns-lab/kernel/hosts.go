// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/network"
)

// RTO's minimum, on the papers' clock. It is above the longest pause: a queue of 8 MB at 40 Gbit/s
// is 1.6 ms. In a lossy network, where it is needed, it is above the gap of LDCP's least window
// behind a queue of its own host (2.4 ms).
const (
	rtoMinNs      = 30_000_000
	rtoMinLossyNs = 10_000_000
)

// rtoMinMaxMs is the kernel's TCP_RTO_MAX.
const rtoMinMaxMs = 120_000

// hostSettings makes TCP behave like the papers' RDMA transport: paced, lossless, never
// slow-starting again. The congestion control is chosen by each socket.
type hostSettings struct {
	sysctls  [][2]string // of the namespace, by path below /proc/sys
	rtoMinMs int         // on the kernel's clock
	ipv6     bool        // it has an IPv6 address
	quickACK int         // 1: receivers acknowledge every packet, 0: every second
}

func hostSettingsOf(p *plan, a algorithm, c clock) hostSettings {
	rtoNs := uint64(rtoMinNs)
	if !p.exp.PFCOn(a.Name) {
		rtoNs = rtoMinLossyNs
	}
	s := hostSettings{
		sysctls: append([][2]string{
			{"net/ipv4/tcp_early_retrans", "0"},   // no tail-loss probes
			{"net/ipv4/tcp_no_metrics_save", "1"}, // a run must not learn from an earlier one
			{"net/ipv4/tcp_slow_start_after_idle", "0"},
			{"net/ipv4/tcp_autocorking", "0"},
			{"net/ipv4/tcp_rmem", "4096 16777216 33554432"},
			{"net/ipv4/tcp_wmem", "4096 4194304 33554432"},
			{"net/ipv4/tcp_comp_sack_nr", "0"}, // an ACK for each packet also behind a loss
		}, ecnSysctls(a)...),
		rtoMinMs: int(min(c.toKernelNs(rtoNs)/1e6, rtoMinMaxMs)),
		quickACK: 1,
	}
	if p.exp.OnlyPrograms() { // which are to find Linux as it is
		s = hostSettings{
			sysctls: [][2]string{{"net/ipv4/tcp_no_metrics_save", "1"}}, ipv6: p.ipv6(),
		}
		if scheme.IsKernelControl(a.Name) {
			s.sysctls = append(s.sysctls,
				[2]string{"net/ipv4/tcp_congestion_control", a.Name})
		}
		return s
	}
	if a.DelayedACK || p.exp.AckEvery == 2 {
		s.quickACK = 0
	}
	return s
}

// ecnSysctls choose how receivers report marks. AccECN's counter in three bits of each ACK is
// enough; its option would take payload from data packets.
func ecnSysctls(a algorithm) [][2]string {
	if a.AccECN {
		return [][2]string{{"net/ipv4/tcp_ecn", "3"}, {"net/ipv4/tcp_ecn_option", "0"}}
	}
	return [][2]string{{"net/ipv4/tcp_ecn", "1"}}
}

const loopback = 1 // of every namespace

// apply gives a host these settings, its address, and a route to all others by a device.
func (s *hostSettings) apply(n namespace, ifindex int, device string, addr netip.Addr) error {
	if err := n.do(s.writeSysctls); err != nil {
		return err
	}
	lo := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: loopback}}
	if err := n.nl.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	dev := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: ifindex}}
	ip := net.IP(addr.AsSlice())
	if err := addAddr(n, dev, addr); err != nil {
		return err
	}
	route := &netlink.Route{
		LinkIndex: ifindex, Scope: netlink.SCOPE_LINK, Src: ip,
		Dst:      &net.IPNet{IP: net.IPv4(10, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
		QuickACK: s.quickACK, RtoMin: s.rtoMinMs, RtoMinLock: s.rtoMinMs > 0,
	}
	if err := n.nl.RouteAdd(route); err != nil {
		return fmt.Errorf("add route: %w", err)
	}
	if s.ipv6 {
		return s.applyIPv6(n, dev, device, addr)
	}
	return nil
}

// applyIPv6 gives a host its IPv6 address, and a route to all others.
func (s *hostSettings) applyIPv6(
	n namespace, dev *netlink.Device, device string, addr netip.Addr,
) error {
	for _, name := range []string{"lo", device} {
		if err := n.do(func() error { return enableIPv6(name, false) }); err != nil {
			return err
		}
	}
	own := network.IPv6Addr(addr)
	if err := addAddr(n, dev, own); err != nil {
		return err
	}
	const prefixBits = 96
	all := &net.IPNet{IP: own.AsSlice(), Mask: net.CIDRMask(prefixBits, own.BitLen())}
	all.IP = all.IP.Mask(all.Mask)
	err := n.nl.RouteAdd(&netlink.Route{
		LinkIndex: dev.Index, Scope: netlink.SCOPE_LINK, Src: own.AsSlice(), Dst: all,
		QuickACK: s.quickACK, RtoMin: s.rtoMinMs, RtoMinLock: s.rtoMinMs > 0,
	})
	if err != nil {
		return fmt.Errorf("add IPv6 route: %w", err)
	}
	return nil
}

func (s *hostSettings) writeSysctls() error {
	for _, sysctl := range s.sysctls {
		if err := writeSetting("/proc/sys/"+sysctl[0], sysctl[1]); err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}
