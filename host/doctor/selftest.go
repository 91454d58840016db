// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/host/internal/rights"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader/ns"
)

// What SelfTest makes. A control of a name of its own leaves one that runs alone: names are the
// machine's.
const (
	selfTestControl = "pcn_selftest"
	selfTestRate    = config.Rate(200e6) // of the bottleneck
	selfTestLine    = config.Rate(1e9)
	selfTestRTT     = 10 * config.Millisecond
	selfTestFlows   = 2
)

// selfTest is two hosts and a router between them. Only this process holds its namespaces, programs
// and pins, so all of it goes when the process ends, however that is.
type selfTest struct {
	a, router, b netns.NsHandle
	bpffs        int
	h            *host.Host
	address      string // of the sink at b
	found        checks
	undo         []func() error
}

// SelfTest runs PCN between two network namespaces, across a third with a router that marks, and
// checks that marks, CNPs and a fair share of two flows come about within about the given time. It
// leaves nothing, also if this process is killed, and does not touch what runs on the host.
func SelfTest(ctx context.Context, send time.Duration) []Check {
	s := &selfTest{a: netns.None(), router: netns.None(), b: netns.None(), bpffs: -1}
	if err := s.run(ctx, send); err != nil {
		s.found.bad(Fail, "self-test", err.Error(), "a test that runs to its end",
			"pcn host doctor")
	}
	for _, undo := range slices.Backward(s.undo) {
		if err := undo(); err != nil {
			s.found.bad(Fail, "removed", err.Error(), "nothing left", "pcn host doctor")
		}
	}
	if isAvailable(selfTestControl) {
		s.found.bad(Fail, "removed", "control "+selfTestControl+" is still registered",
			"nothing left", "wait for another self-test, or see bpftool struct_ops")
	} else {
		s.found.ok("removed", "nothing is left")
	}
	return s.found.all
}

func (s *selfTest) run(ctx context.Context, send time.Duration) error {
	if err := host.HaveKernel(); err != nil {
		return err
	}
	if isAvailable(selfTestControl) {
		return fmt.Errorf("control %s is registered: another self-test runs: wait for it",
			selfTestControl)
	}
	for _, step := range []func() error{s.makeNamespaces, s.makeLinks, s.mountBPF} {
		if err := step(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	hasQueue, err := s.limitRate()
	if err != nil {
		return err
	}
	if err := s.up(ctx, hasQueue); err != nil {
		return err
	}
	s.found.ok("loads", "control %s, RP and NP; what runs on this host is left alone",
		selfTestControl)
	if !hasQueue {
		s.found.bad(Warn, "marks", "left out: this kernel has neither HTB nor TBF, so no queue",
			"sch_htb or sch_tbf", "modprobe sch_htb")
	}
	return s.send(ctx, send, hasQueue)
}

// onClose makes the end of the test call a function.
func (s *selfTest) onClose(undo func() error) { s.undo = append(s.undo, undo) }

func (s *selfTest) makeNamespaces() error {
	for _, h := range []*netns.NsHandle{&s.a, &s.router, &s.b} {
		var err error
		if *h, err = ns.New(func() error { return nil }); err != nil {
			return rights.Explain(err, rights.Entering...)
		}
		s.onClose(h.Close)
	}
	return nil
}

// selfTestLinks are the ends of the two veth pairs, with their addresses and default routes.
var selfTestLinks = [2][2]struct{ name, address, gateway string }{
	{{"a0", "192.0.2.1/30", "192.0.2.2"}, {"r0", "192.0.2.2/30", ""}},
	{{"r1", "198.51.100.1/30", ""}, {"b0", "198.51.100.2/30", "198.51.100.1"}},
}

func (s *selfTest) makeLinks() error {
	places := [2][2]netns.NsHandle{{s.a, s.router}, {s.router, s.b}}
	for i, pair := range selfTestLinks {
		if err := ns.Do(places[i][0], func() error {
			return netlink.LinkAdd(&netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: pair[0].name},
				PeerName:  pair[1].name, PeerNamespace: netlink.NsFd(places[i][1]),
			})
		}); err != nil {
			return fmt.Errorf("add a veth pair: %w", err)
		}
		for j, end := range pair {
			if err := ns.Do(places[i][j], func() error {
				return configureEnd(end.name, end.address, end.gateway)
			}); err != nil {
				return fmt.Errorf("set up interface %s: %w", end.name, err)
			}
		}
	}
	return ns.Do(s.router, func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	})
}

func configureEnd(name, address, gateway string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	if err := errors.Join(
		netlink.LinkSetGSOMaxSegs(l, 1), // one skb is one packet, as on a wire
		netlink.AddrAdd(l, a),
		netlink.LinkSetUp(l),
	); err != nil || gateway == "" {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: net.ParseIP(gateway)})
}

// mountBPF makes a BPF file system that is mounted nowhere: only this process sees it.
func (s *selfTest) mountBPF() error {
	context, err := unix.Fsopen("bpf", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open a BPF file system: %w", err)
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return fmt.Errorf("make a BPF file system: %w", err)
	}
	if s.bpffs, err = unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0); err != nil {
		return fmt.Errorf("mount a BPF file system: %w", err)
	}
	s.onClose(func() error { return unix.Close(s.bpffs) })
	s.h = host.At(fmt.Sprintf("/proc/self/fd/%d/pcn", s.bpffs))
	return nil
}

// limitRate makes the router's interface to b the bottleneck. It reports whether this kernel can.
func (s *selfTest) limitRate() (bool, error) {
	var err error
	_ = ns.Do(s.router, func() error { err = limitInterface(selfTestLinks[1][0].name); return nil })
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("limit the router's rate: %w", err)
	}
	return true, nil
}

func limitInterface(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	const burst = 4 * 1514 // bytes: full frames of Ethernet
	attrs := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT,
		Handle: netlink.MakeHandle(1, 0)}
	htb := netlink.NewHtb(attrs)
	htb.Defcls = 1
	err = netlink.QdiscAdd(htb)
	if errors.Is(err, unix.ENOENT) {
		return netlink.QdiscAdd(&netlink.Tbf{QdiscAttrs: attrs, Rate: uint64(selfTestRate) / 8,
			Limit: 1 << 20, Buffer: burst})
	}
	if err != nil {
		return err
	}
	return netlink.ClassAdd(netlink.NewHtbClass(
		netlink.ClassAttrs{LinkIndex: l.Attrs().Index, Parent: attrs.Handle,
			Handle: netlink.MakeHandle(1, 1)},
		netlink.HtbClassAttrs{Rate: uint64(selfTestRate), Buffer: burst, Cbuffer: burst}))
}

// up runs what pcn host up runs, in each namespace.
func (s *selfTest) up(ctx context.Context, hasQueue bool) error {
	pcn, ok := scheme.Builtin().ByControl("pcn")
	if !ok {
		return errors.New("this program has no control pcn: build it again")
	}
	pcn.Control = selfTestControl
	sender := &host.Config{LineRate: selfTestLine, RTT: selfTestRTT,
		RP: &host.RP{Interfaces: []string{selfTestLinks[0][0].name}}}
	sender.Controls.AddScheme(pcn)
	receiver := &host.Config{RTT: selfTestRTT,
		NP: &host.NP{Interfaces: []string{selfTestLinks[1][1].name}}}
	marker := &host.Config{WRED: &host.WRED{Interfaces: []string{selfTestLinks[1][0].name},
		KMin: 30_000, KMax: 30_000}}
	s.onClose(func() error {
		_, err := s.h.DownAll(context.WithoutCancel(ctx))
		return err
	})
	for _, one := range []struct {
		in netns.NsHandle
		c  *host.Config
	}{{s.a, sender}, {s.b, receiver}, {s.router, marker}} {
		if one.c == marker && !hasQueue {
			continue
		}
		if err := one.c.Check("self-test"); err != nil {
			return err
		}
		if err := ns.Do(one.in, func() error {
			_, err := s.h.Up(ctx, one.c)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// send runs the flows, and checks what they came to.
func (s *selfTest) send(ctx context.Context, length time.Duration, hasQueue bool) error {
	if err := s.listen(); err != nil {
		return err
	}
	var flows []*net.TCPConn
	for range selfTestFlows {
		var c *net.TCPConn
		if err := ns.Do(s.a, func() (err error) {
			c, err = dialWith(ctx, s.address, selfTestControl)
			return err
		}); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer c.Close()
		flows = append(flows, c)
		go func() {
			for b := make([]byte, 1<<16); ; {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		}()
	}
	// The first third is for finding the rate.
	if err := sleep(ctx, length/3); err != nil {
		return err
	}
	before, err := ackedBytes(flows)
	if err != nil {
		return err
	}
	idle := idleSeconds()
	began := time.Now()
	if err := sleep(ctx, length*2/3); err != nil {
		return err
	}
	after, err := ackedBytes(flows)
	if err != nil {
		return err
	}
	took := time.Since(began)
	var rates []float64
	for i := range flows {
		rates = append(rates, float64(after[i]-before[i])*8/took.Seconds())
	}
	if hasQueue {
		s.judgeCounts()
		s.judgeShares(rates, idleSeconds()-idle < leastIdle*took.Seconds())
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listen starts a sink at b.
func (s *selfTest) listen() error {
	var l net.Listener
	address, _, _ := strings.Cut(selfTestLinks[1][1].address, "/")
	if err := ns.Do(s.b, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	}); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.address = l.Addr().String()
	s.onClose(l.Close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(io.Discard, c) // until the sender ends
				c.Close()
			}()
		}
	}()
	return nil
}

func ackedBytes(flows []*net.TCPConn) ([]uint64, error) {
	var bytes []uint64
	for _, c := range flows {
		info, err := socket.Info(c)
		if err != nil {
			return nil, fmt.Errorf("read a connection: %w", err)
		}
		bytes = append(bytes, info.Bytes_acked)
	}
	return bytes, nil
}

// judgeCounts looks for marks and CNPs in what the programs counted.
func (s *selfTest) judgeCounts() {
	counts := map[string]uint64{} // by component and counter
	for _, in := range []netns.NsHandle{s.a, s.router, s.b} {
		if err := ns.Do(in, func() error {
			status, err := s.h.Status(context.Background(), nil)
			if err != nil {
				return err
			}
			for _, c := range status.Components {
				for counter, n := range c.Counts {
					counts[c.Name+" "+counter] = n
				}
				if len(c.Problems) > 0 {
					return fmt.Errorf("%s: %s", c.Name, strings.Join(c.Problems, "; "))
				}
			}
			return nil
		}); err != nil {
			s.found.bad(Fail, "counters", err.Error(), "whole components", "pcn host doctor")
			return
		}
	}
	for _, one := range []struct{ name, counter, what string }{
		{"marks", "wred marked", "packets that the router marked"},
		{"CNPs sent", "np cnp_decrease", "CNPs that NP sent for them"},
		{"CNPs heard", "rp cnp_decrease", "CNPs that RP passed to the flows"},
	} {
		if n := counts[one.counter]; n > 0 {
			s.found.ok(one.name, "%d %s", n, one.what)
		} else {
			s.found.bad(Fail, one.name, "no "+one.what, "some: two flows fill the link",
				"report this with the output of pcn host doctor")
		}
	}
}

// leastIdle is the share of one CPU that has nothing to do on a machine that is not short of CPU.
const leastIdle = 0.05

// idleSeconds returns how long all CPUs have had nothing to do. Where that can't be read, no
// difference of two is small.
func idleSeconds() float64 {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return math.Inf(1)
	}
	stat, err := proc.Stat()
	if err != nil {
		return math.Inf(1)
	}
	return stat.CPUTotal.Idle + stat.CPUTotal.Iowait
}

// judgeShares checks that the flows fill the link and share it. The bounds are wide: this tells a
// control that works from one that does not, on a machine that does other things too. One that is
// short of CPU sends as it is let, so nothing follows from that.
func (s *selfTest) judgeShares(rates []float64, isBusy bool) {
	const leastUse, leastFairness = 0.5, 0.7
	level, advice := Fail, "try again with --time 10s"
	if isBusy {
		level, advice = Warn, "no CPU was idle meanwhile: try again on an idle machine"
	}
	var sum, squares float64
	var texts []string
	for _, r := range rates {
		sum += r
		squares += r * r
		texts = append(texts, fmt.Sprintf("%.0f", r/1e6))
	}
	is := fmt.Sprintf("%s of %.0f Mbit/s", strings.Join(texts, " and "), float64(selfTestRate)/1e6)
	if use := sum / float64(selfTestRate); use < leastUse {
		s.found.bad(level, "use", is, fmt.Sprintf("at least %.0f%% together", 100*leastUse), advice)
		return
	}
	fairness := sum * sum / (float64(len(rates)) * squares)
	if fairness < leastFairness {
		s.found.bad(level, "fair share", fmt.Sprintf("%s, Jain's index %.2f", is, fairness),
			fmt.Sprintf("at least %.2f", leastFairness), advice)
		return
	}
	s.found.ok("fair share", "%s, Jain's index %.2f", is, fairness)
}
