// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/loader"
)

const fabricYAML = `
name: fabric
topology: {kind: fig1, burst_hosts: 1, rate: 40Gbps, delay: 5us}
frame: 1000B
schemes: [pfc, pcn]
warmup: 0.2ms
duration: 0.4ms
sample: 50us
flows: [{name: F0, from: H0, to: R0}, {name: F1, from: H1, to: R1}]
`

// traces is what a lab could leave on the machine.
type traces struct {
	Namespaces, Controls, Devices []string
	State                         []string
	Settings                      []string // the machine's
	Files                         int      // open in this process
}

func findTraces(t *testing.T) traces {
	t.Helper()
	controls, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	qt.Assert(t, qt.IsNil(err))
	var settings []string
	for _, s := range append([][2]string{{rcuExpedited}}, machineSettings...) {
		setting, err := os.ReadFile(s[0])
		if !errors.Is(err, os.ErrNotExist) { // not every kernel has each
			qt.Assert(t, qt.IsNil(err))
		}
		settings = append(settings, string(setting))
	}
	links, err := netlink.LinkList()
	qt.Assert(t, qt.IsNil(err))
	var devices []string
	for _, l := range links {
		devices = append(devices, l.Attrs().Name)
	}
	return traces{
		Namespaces: entries(t, netnsDir), Controls: strings.Fields(string(controls)), Devices: devices,
		State:    slices.DeleteFunc(entries(t, stateDir), func(name string) bool { return name == "lab.lock" }), // always there
		Settings: settings,
		Files:    len(entries(t, "/proc/self/fd")),
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{}
	list, err := os.ReadDir(dir)
	if !os.IsNotExist(err) {
		qt.Assert(t, qt.IsNil(err))
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// leavesNothing runs fn, which must leave the machine as it was.
func leavesNothing(t *testing.T, fn func()) {
	t.Helper()
	before := findTraces(t)
	fn()
	after := findTraces(t)
	for began := time.Now(); after.Files > before.Files && time.Since(began) < 10*time.Second; after = findTraces(t) {
		time.Sleep(10 * time.Millisecond) // threads of namespaces end a little later
	}
	after.Files = max(after.Files, before.Files) // those of an earlier test may be closed meanwhile
	qt.Check(t, qt.DeepEquals(after, before))
}

// TestFailureAtEachStep: a fabric that can't be built is removed, whatever there is of it.
func TestFailureAtEachStep(t *testing.T) {
	broken := errors.New("broken")
	p := planOf(t, fabricYAML)
	buildTo := func(scheme string, steps int) error {
		f := describeFabric(p, algorithmIn(t, p, scheme))
		return f.build(append(f.steps()[:steps:steps], func() error { return broken })...)
	}
	all := len(describeFabric(p, algorithmIn(t, p, "pcn")).steps())
	qt.Assert(t, qt.ErrorIs(buildTo("pcn", all), broken)) // what the process itself opens once is open
	for steps := range all + 1 {
		leavesNothing(t, func() { qt.Check(t, qt.ErrorIs(buildTo("pcn", steps), broken)) })
	}
	leavesNothing(t, func() { qt.Check(t, qt.ErrorIs(buildTo("pfc", all), broken)) })
}

// TestFailures breaks what a step finds.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name string
		prep func(t *testing.T, p *plan)
		want string
	}{
		{"foreign namespace", func(t *testing.T, p *plan) { makeNamespace(t, "R1") }, "network namespace R1 exists and is not a lab's: .*"},
		{"another lab", func(t *testing.T, p *plan) { openTestRegistry(t) }, "another lab runs on this kernel: .*"},
		{"bad parameters", func(t *testing.T, p *plan) {
			p.exp = parse(t, fabricYAML+"pcn: {w_min: 1/64}\n")
			set := p.exp.Settings(algorithmIn(t, p, "pcn").Scheme)
			set.Given["w_min"] = scheme.Value{Kind: scheme.KindRatio, Number: 2}
		}, `congestion control pcn: w_min: 2 is out of range \(hint: 0.000.* to w_max = 0.5\)`},
		{"control taken", func(t *testing.T, p *plan) {
			c, err := loader.Register(loader.Registration{
				Scheme: algorithmIn(t, p, "pcn").Scheme, Network: scheme.Network{LineRateBps: 1e9},
				Settings: scheme.Settings{Given: map[string]scheme.Value{
					"w_min": {Kind: scheme.KindRatio, Number: 0.1},
					"w_max": {Kind: scheme.KindRatio, Number: 0.5},
				}},
			})
			qt.Assert(t, qt.IsNil(err))
			t.Cleanup(func() { c.Close() })
		}, "register congestion control pcn .*"},
		{"impossible MTU", func(t *testing.T, p *plan) { p.exp.Frame = 70_000 }, "make link H0->S0: add veth: .*"},
		{"no names left", func(t *testing.T, p *plan) { p.nodes[p.ports[2].peer].name = "a-name-of-16-byte" }, "make link H0->S0: .*"},
		{"sysctl refused", func(t *testing.T, p *plan) { coverReadOnly(t, machineSettings[1][0]) }, "change the machine's settings: .*tcp_mem: read-only file system"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := planOf(t, fabricYAML)
			test.prep(t, p)
			leavesNothing(t, func() {
				_, err := newFabric(p, "pcn")
				qt.Check(t, qt.ErrorMatches(err, test.want))
			})
		})
	}
}

// coverReadOnly puts a read-only copy over a file.
func coverReadOnly(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	qt.Assert(t, qt.IsNil(err))
	cover := t.TempDir() + "/cover"
	qt.Assert(t, qt.IsNil(os.WriteFile(cover, b, 0o444)))
	qt.Assert(t, qt.IsNil(unix.Mount(cover, path, "", unix.MS_BIND, "")))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(unix.Unmount(path, 0))) })
	qt.Assert(t, qt.IsNil(unix.Mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")))
}

// buildFabric builds a fabric that goes with the test.
func buildFabric(t *testing.T, yaml, scheme string) *fabric {
	t.Helper()
	f, err := newFabric(planOf(t, yaml), scheme)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(f.close())) })
	return f
}

// TestFabricIsAsPlanned reads back from the kernel what was set.
func TestFabricIsAsPlanned(t *testing.T) {
	f := buildFabric(t, fabricYAML, "pcn")
	settings := hostSettingsOf(f.plan, f.algorithm, f.clock)
	for i := range f.plan.hosts {
		err := f.nodes[i].do(func() error { return sysctlsAre(settings.sysctls) })
		qt.Check(t, qt.IsNil(err), qt.Commentf("host %s", f.plan.nodes[i].name))
		checkRoute(t, f, i)
	}
	for id := uint32(1); id < uint32(len(f.plan.ports)); id++ {
		link, err := f.links.node(id).nl.LinkByName(f.plan.device(id))
		qt.Assert(t, qt.IsNil(err))
		a := link.Attrs()
		qt.Check(t, qt.Equals(a.Group, id))
		qt.Check(t, qt.Equals(a.GSOMaxSegs, 1))
		qt.Check(t, qt.Equals(a.MTU, 1000-14))
		qt.Check(t, qt.Equals(a.Index, f.links.ifindex[id]))
		qt.Check(t, qt.IsTrue(a.Flags&net.FlagUp != 0))
		qt.Check(t, qt.IsTrue(a.RawFlags&unix.IFF_NOARP != 0))
		qdiscs, err := f.links.node(id).nl.QdiscList(link)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(slices.ContainsFunc(qdiscs, func(q netlink.Qdisc) bool {
			return q.Type() == "npecn" && q.Attrs().Parent == netlink.HANDLE_ROOT
		})))
	}
	for _, s := range machineSettings {
		b, err := os.ReadFile(s[0])
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(strings.Fields(string(b)), strings.Fields(s[1])))
	}
}

// sysctlsAre compares the settings of the thread's namespace.
func sysctlsAre(want [][2]string) error {
	for _, s := range want {
		b, err := os.ReadFile("/proc/sys/" + s[0])
		if err != nil {
			return err
		}
		if got := strings.Join(strings.Fields(string(b)), " "); got != s[1] {
			return fmt.Errorf("%s is %q, want %q", s[0], got, s[1])
		}
	}
	return nil
}

func checkRoute(t *testing.T, f *fabric, host int) {
	t.Helper()
	routes, err := f.nodes[host].nl.RouteList(nil, netlink.FAMILY_V4)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(routes, 1))
	r := routes[0]
	qt.Check(t, qt.Equals(r.Dst.String(), "10.0.0.0/8"))
	qt.Check(t, qt.Equals(r.Src.String(), f.plan.nodes[host].addr.String()))
	qt.Check(t, qt.Equals(r.QuickACK, 1))
	qt.Check(t, qt.Equals(r.RtoMin, 30<<10)) // ms: 30 ms of the papers' time
	qt.Check(t, qt.IsTrue(r.RtoMinLock))
}

// TestConnectFailures: flows that can't be set up leave no socket behind.
func TestConnectFailures(t *testing.T) {
	f := buildFabric(t, fabricYAML+"bursts: [{name: b, from: H2, to: R1, size: 1KB}]\n", "pfc")
	ctx := context.Background()
	tr, err := newTraffic(ctx, f)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(tr.close()))

	occupy := func(host, addr string) {
		qt.Assert(t, qt.IsNil(f.nodes[f.plan.host(host)].do(func() error {
			c, err := net.Listen("tcp4", addr)
			if err == nil {
				t.Cleanup(func() { c.Close() })
			}
			return err
		})))
	}
	occupy("R1", "10.0.0.5:20000")
	leavesNothing(t, func() {
		_, err := newTraffic(ctx, f)
		qt.Check(t, qt.ErrorMatches(err, "flow F1: listen on 10.0.0.5:20000: .*address already in use"))
	})
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	leavesNothing(t, func() {
		_, err := newTraffic(cancelled, f)
		qt.Check(t, qt.ErrorIs(err, context.Canceled))
	})
}

// TestUpAndDown: a Clos that is built and removed leaves nothing, and says what it cost.
func TestUpAndDown(t *testing.T) {
	e := parse(t, `
name: small-clos
topology: {kind: clos, pods: 2, tors: 2, leaves: 2, spines: 2, hosts: 4, rate: 10Gbps}
schemes: [pcn]
duration: 1ms
flows: [{name: F0, from: H0, to: H15}]
`)
	var steps []job.Step
	tell := func(s job.Step) { steps = append(steps, s) }
	_, err := UpAndDown(e, "pcn", tell) // what the process itself opens once is open
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(steps, []job.Step{job.Building, job.Built, job.Removed}))
	leavesNothing(t, func() {
		s, err := UpAndDown(e, "pcn", tell)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(s.Nodes, 16+4+4+2))
		qt.Check(t, qt.Equals(s.Links, 16+8+8))
		qt.Check(t, qt.IsFalse(s.WithoutQdisc))
	})
}
