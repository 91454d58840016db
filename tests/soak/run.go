// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host"
)

// withPCN are the hosts on which pcn host runs.
var withPCN = []string{clientHost, serverHost, routerHost}

// soak is a run.
type soak struct {
	o        options
	bed      *bed
	clients  *clients
	report   *report
	watch    *watch
	baseline objects // of the bed
	variants map[string]uint32
	killed   map[string]bool // in this round
}

// runInside runs the soak in this process's namespaces.
func runInside(ctx context.Context, o options, w io.Writer) error {
	path, err := filepath.Abs(o.pcn)
	if err != nil {
		return err
	}
	o.pcn = path
	if err := mountAll(withPCN...); err != nil {
		return err
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	b, err := buildBed(o.mbps)
	if err != nil {
		return err
	}
	r := newReport(w)
	s := &soak{
		o: o, bed: b, report: r, clients: newClients(b, r), watch: newWatch(b, r),
		variants: map[string]uint32{}, killed: map[string]bool{},
	}
	defer s.watch.stop()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	err = s.rounds(ctx)
	if err != nil && ctx.Err() == nil {
		r.violation("the run ended early: %v", err)
	}
	r.clients = s.clients.counts()
	err = r.finish()
	if ctx.Err() != nil {
		return errors.Join(err, errors.New("interrupted"))
	}
	return err
}

// prepare starts servers and takes the baseline of what is there without pcn.
func (s *soak) prepare(ctx context.Context) (err error) {
	h := s.bed.host(serverHost)
	if err := serveAll(ctx, h); err != nil {
		return fmt.Errorf("start servers: %w", err)
	}
	if _, err := exec.LookPath("iperf3"); err == nil {
		c := command(ctx, serverHost, h.ns, "iperf3", "-s", "-p", strconv.Itoa(iperfPort))
		if err := c.Start(); err != nil {
			return fmt.Errorf("start iperf3: %w", err)
		}
		closeFiles(c)
		go func() { _ = c.Wait() }()
	}
	s.baseline, err = readObjects()
	return err
}

func (s *soak) rounds(ctx context.Context) error {
	p := s.o.planner()
	s.report.printf("seed %d, %v in rounds of %v, %s", s.o.seed, s.o.length, p.Length,
		kernelVersion())
	for n, left := 0, s.o.length; left > 0; n, left = n+1, left-p.Length {
		if err := s.round(ctx, p.round(n)); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func kernelVersion() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err.Error()
	}
	return "Linux " + unix.ByteSliceToString(u.Release[:])
}

// round runs clients and events, then a checkpoint. An error means that the run can't go on.
func (s *soak) round(ctx context.Context, r round) error {
	s.report.printf("round %d: %d clients, %d events", r.Number, len(r.Clients), len(r.Events))
	clear(s.killed)
	// Packets that are not ECN-capable must not starve beside others: the router's k is 0.
	for _, h := range withPCN {
		if err := s.up(ctx, h, 0); err != nil {
			return err
		}
		if err := s.watch.serve(ctx, h, s.o.pcn); err != nil {
			return err
		}
	}
	s.choosePCN("pcn")
	began := time.Now()
	go s.watch.loop(ctx, s.clients)
	for clients, events := r.Clients, r.Events; len(clients)+len(events) > 0 && ctx.Err() == nil; {
		switch now := time.Since(began); {
		case len(clients) > 0 && clients[0].At <= now:
			s.clients.start(ctx, clients[0])
			clients = clients[1:]
		case len(events) > 0 && events[0].At <= now:
			s.report.printf("  %v", events[0])
			if err := s.event(ctx, events[0]); err != nil && ctx.Err() == nil {
				s.report.violation("event: %v: %v", events[0], err)
			}
			events = events[1:]
		default:
			sleep(ctx, 20*time.Millisecond)
		}
	}
	return s.checkpoint(ctx, r.Number)
}

// choosePCN sets the guest's default congestion control.
func (s *soak) choosePCN(name string) {
	if h := s.bed.host(guestHost); h != nil {
		if err := h.do(func() error {
			return sysctl("ipv4/tcp_congestion_control", name)
		}); err != nil {
			s.report.violation("choose %s in the guest: %v", name, err)
		}
	}
}

// run runs pcn on a host, and returns what it printed and its exit code.
func (s *soak) run(ctx context.Context, on string, args ...string) (string, int, error) {
	const patience = 60 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := command(ctx, on, s.bed.host(on).ns, append([]string{s.o.pcn, "host"}, args...)...)
	defer closeFiles(c)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
		return out.String(), exit.ExitCode(), nil
	}
	return out.String(), 0, err
}

func closeFiles(c *exec.Cmd) {
	for _, f := range c.ExtraFiles {
		_ = f.Close()
	}
}

// configFile writes a host's configuration to a file, which lies in this mount namespace only.
func (s *soak) configFile(on string, variant uint32) (string, error) {
	path := filepath.Join(scratch, on+".yaml")
	return path, os.WriteFile(path, []byte(hostConfig(on, variant, s.bed.hasEth1())), 0o600)
}

// up configures a host, and checks that the status agrees.
func (s *soak) up(ctx context.Context, on string, variant uint32) error {
	s.variants[on] = variant
	file, err := s.configFile(on, variant)
	if err != nil {
		return err
	}
	out, code, err := s.run(ctx, on, "up", "--config", file)
	if err != nil || code != 0 {
		return fmt.Errorf("pcn host up on %s: %v, exit code %d: %s", on, err, code, out)
	}
	out, code, err = s.run(ctx, on, "status", "--config", file)
	if err != nil || code != 0 && (code != 1 || !onlyLosses(out)) {
		return fmt.Errorf("pcn host status on %s after up: %v, exit code %d: %s", on, err, code,
			out)
	}
	return nil
}

var flowsLost = regexp.MustCompile(
	`PROBLEM: \d+ of \d+ live flows have a TCP window: they lost packets`)

// onlyLosses says whether all problems that a status names are flows that lost packets, which they
// do here: events lose some, and so does a machine that is busy.
func onlyLosses(status string) bool { return only(status, "PROBLEM: ", flowsLost) }

// only says whether a text has a word, and only where the pattern matches, which has it once.
func only(text, word string, pattern *regexp.Regexp) bool {
	n := strings.Count(text, word)
	return n > 0 && n == len(pattern.FindAllString(text, -1))
}

func (s *soak) down(ctx context.Context, on string) error {
	s.watch.mayReset(on)
	defer s.watch.mayReset(on)
	out, code, err := s.run(ctx, on, "down")
	if err != nil || code != 0 {
		return fmt.Errorf("pcn host down on %s: %v, exit code %d: %s", on, err, code, out)
	}
	return nil
}

// event makes a change, and checks what pcn says of it.
func (s *soak) event(ctx context.Context, e event) error {
	ms := time.Duration(e.Value) * time.Millisecond
	switch e.Kind {
	case setLoss:
		p := s.bed.toServer
		if e.Host == "to-client" {
			p = s.bed.toward
		}
		return p.change(func(st *pathState) { st.Lose = share(e.Value) })
	case setReorder:
		return s.bed.toServer.change(func(st *pathState) { st.Reorder = share(e.Value) })
	case setRate:
		return s.bed.rate(e.Value)
	case setMTU:
		return s.bed.mtu(e.Value)
	case flap:
		return s.bed.flap(ms)
	case route:
		return s.bed.routeBy(e.Value)
	case upgrade:
		return s.up(ctx, e.Host, uint32(e.Value))
	case downUp:
		if err := s.down(ctx, e.Host); err != nil {
			return err
		}
		defer s.choosePCN("pcn")
		return s.up(ctx, e.Host, uint32(e.Value))
	case killUp:
		return s.killUp(ctx, e)
	case killServe:
		s.watch.kill(e.Host)
		return s.watch.serve(ctx, e.Host, s.o.pcn)
	case delDevice:
		return s.deleteDevice(ctx)
	case delNS:
		return s.deleteGuest(ctx)
	case clockStep:
		now := unix.NsecToTimespec(time.Now().Add(ms).UnixNano())
		return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
	case offlineCPU:
		return withoutCPU(ctx, ms)
	}
	return fmt.Errorf("unknown event %q", e.Kind)
}

// withoutCPU takes the last CPU offline for a time.
func withoutCPU(ctx context.Context, d time.Duration) error {
	file := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", runtime.NumCPU()-1)
	if err := os.WriteFile(file, []byte("0"), 0o644); err != nil {
		return fmt.Errorf("take a CPU offline: %w", err)
	}
	sleep(ctx, d)
	return os.WriteFile(file, []byte("1"), 0o644)
}

// killUp kills an upgrade. The status must then be readable, and the next upgrade whole.
func (s *soak) killUp(ctx context.Context, e event) error {
	variant, err := strconv.ParseUint(e.Text, 10, 32)
	if err != nil {
		return err
	}
	file, err := s.configFile(e.Host, uint32(variant))
	if err != nil {
		return err
	}
	s.killed[e.Host] = true
	s.watch.mayReset(e.Host)
	defer s.watch.mayReset(e.Host)
	c := command(ctx, e.Host, s.bed.host(e.Host).ns, s.o.pcn, "host", "up", "--config", file)
	defer closeFiles(c)
	if err := c.Start(); err != nil {
		return err
	}
	kill := time.AfterFunc(time.Duration(e.Value)*time.Millisecond, func() { _ = c.Process.Kill() })
	_ = c.Wait()
	kill.Stop()
	if out, code, err := s.run(ctx, e.Host, "status"); err != nil || code > 1 {
		return fmt.Errorf("status after a killed up: %v, exit code %d: %s", err, code, out)
	}
	return s.up(ctx, e.Host, uint32(variant))
}

// deleteDevice takes eth1 from the client's host, with programs attached to it and routes by it.
func (s *soak) deleteDevice(ctx context.Context) error {
	variant := s.variants[clientHost]
	if err := s.bed.removeDevice(); err != nil {
		return err
	}
	out, code, err := s.run(ctx, clientHost, "status")
	if err != nil || code != 1 {
		return fmt.Errorf("status without eth1: %v, exit code %d, want 1: %s", err, code, out)
	}
	if err := s.up(ctx, clientHost, variant); err != nil {
		return err
	}
	sleep(ctx, 300*time.Millisecond)
	if err := s.bed.addDevice(); err != nil {
		return err
	}
	if err := s.bed.route(clientHost, linkClient1, 200); err != nil {
		return err
	}
	return s.up(ctx, clientHost, variant)
}

func (s *soak) deleteGuest(ctx context.Context) error {
	if err := s.bed.removeGuest(); err != nil {
		return err
	}
	s.clients.guestGone()
	sleep(ctx, 200*time.Millisecond)
	if err := s.bed.addGuest(); err != nil {
		return err
	}
	s.choosePCN("pcn")
	return nil
}

// checkpoint lets all clients end on a good path. Then nothing may be left of them, nor of pcn
// after down.
func (s *soak) checkpoint(ctx context.Context, n int) error {
	if err := s.heal(); err != nil {
		return err
	}
	for _, left := range s.clients.wait(2 * clientPatience) {
		s.report.violation("round %d: did not end: %s", n, left)
	}
	s.watch.pause()
	if ctx.Err() != nil {
		return nil
	}
	for _, h := range withPCN {
		if err := s.up(ctx, h, 0); err != nil {
			s.report.violation("round %d: %v", n, err)
		}
	}
	s.drained(n)
	for _, h := range withPCN {
		s.watch.compareStatus(ctx, h, func() (string, int, error) {
			return s.run(ctx, h, "status", "--json")
		})
	}
	if !s.killed[serverHost] {
		s.watch.compareSums(n)
	}
	sample := s.watch.sample()
	s.choosePCN("reno") // which any namespace may choose
	for _, h := range withPCN {
		if err := s.down(ctx, h); err != nil {
			s.report.violation("round %d: %v", n, err)
		}
	}
	left, err := objectsLeft(s.baseline, machineProc, retries)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		s.report.violation("round %d: left after down: %v", n, left)
	}
	for _, h := range withPCN {
		if _, err := os.Stat(root(h)); err == nil {
			s.report.violation("round %d: %s is there after down", n, root(h))
		}
	}
	sample.add("BPF objects after down", float64(len(left)))
	s.report.addSample(sample)
	s.report.interim()
	return nil
}

// heal gives the paths back what events took.
func (s *soak) heal() error {
	good := func(st *pathState) { st.Lose, st.Reorder = 0, 0 }
	return errors.Join(s.bed.toServer.change(good), s.bed.toward.change(good), s.bed.rate(100),
		s.bed.mtu(1500), s.bed.routeBy(0))
}

// drained checks that no flow table has an entry when no client is there.
func (s *soak) drained(n int) {
	const patience = 20 * time.Second
	flows := func() int {
		all, err := host.At(root(clientHost)).Flows()
		if err != nil {
			s.report.violation("read flows: %v", err)
		}
		return len(all)
	}
	received := func() int {
		// the folder has the namespace's cookie behind its name
		pins, err := filepath.Glob(filepath.Join(root(serverHost), "np@*", "map_np_flows"))
		if err != nil || len(pins) != 1 {
			s.report.violation("find NP's flows: %d maps: want 1: %v", len(pins), err)
			return 0
		}
		m, err := ebpf.LoadPinnedMap(pins[0], nil)
		if err != nil {
			s.report.violation("read NP's flows: %v", err)
			return 0
		}
		defer m.Close()
		count, it := 0, m.Iterate()
		for key, value := []byte(nil), []byte(nil); it.Next(&key, &value); {
			count++
		}
		return count
	}
	for what, count := range map[string]func() int{"senders": flows, "receivers": received} {
		left := count()
		for deadline := time.Now().Add(patience); left > 0 && time.Now().Before(deadline); {
			time.Sleep(100 * time.Millisecond)
			left = count()
		}
		if left > 0 {
			s.report.violation("round %d: %d flows of %s are left without clients", n, left, what)
		}
	}
}
