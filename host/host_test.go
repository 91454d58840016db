// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/internal/vm/vmtest"
	"github.com/pcn-linux/pcn/loader"
)

const small = `
line_rate: 1Gbps
rtt: 1ms
controls: {pcn: {}}
np: {interfaces: [veth0]}
rp: {interfaces: [veth0]}
stamp: {interfaces: [veth0]}
`

// light has no NP and RP, which emulated kernels verify for seconds.
const light = `
line_rate: 1Gbps
controls: {pcn: {}}
stamp: {interfaces: [veth0]}
`

// wire joins this host, the namespace of the test, to a peer that answers what it is sent, and takes all of it away
// in the end.
func wire(t *testing.T) (here, peer nstest.End) {
	t.Helper()
	home, err := netns.Get()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { home.Close() })
	t.Cleanup(func() {
		_, err := host.New().Down(context.Background())
		qt.Check(t, qt.IsNil(err))
		leavesNothing(t)
	})
	return nstest.Veth(t, home, nstest.New(t), netip.MustParsePrefix("10.7.0.1/24"), netip.MustParsePrefix("10.7.0.2/24"))
}

// leavesNothing checks that the kernel has nothing of ours.
func leavesNothing(t *testing.T) {
	t.Helper()
	_, err := os.Stat(host.DefaultRoot)
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
	nstest.Eventually(t, "no link is left", func() bool { return links(t) == 0 })
	qt.Check(t, qt.IsFalse(available(t, "pcn")))
}

func links(t *testing.T) int {
	t.Helper()
	n := 0
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		n++
	}
	qt.Assert(t, qt.IsNil(it.Err()))
	return n
}

func available(t *testing.T, name string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	qt.Assert(t, qt.IsNil(err))
	return slices.Contains(strings.Fields(string(b)), name)
}

func parse(t *testing.T, text string) *host.Config {
	t.Helper()
	c, err := host.Parse("test.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	return c
}

func up(t *testing.T, text string) map[string]string {
	t.Helper()
	changes, err := host.New().Up(context.Background(), parse(t, text))
	qt.Assert(t, qt.IsNil(err))
	out := map[string]string{}
	for _, c := range changes {
		out[c.Component] = c.What
	}
	return out
}

// connectWith chooses the control before the first packet, which asks for ECN.
func connectWith(t *testing.T, peer nstest.End, control string) connection {
	t.Helper()
	l := echo(t, peer)
	dialer := net.Dialer{Control: socket.Choose(control)}
	c, err := dialer.Dial("tcp", l.Addr().String())
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { c.Close() })
	return connection{c}
}

// connection is one of congestion control pcn to the peer, who sends back what it gets.
type connection struct{ net.Conn }

// connect has the control at both ends for the handshake, so that ECN is negotiated also where nothing rewrites SYNs,
// and then at its own end only. Without one it is the namespace's.
func connect(t *testing.T, peer nstest.End, control string) connection {
	t.Helper()
	set := socket.Choose(control)
	var l net.Listener
	nstest.Do(t, peer.NS, func() (err error) {
		l, err = (&net.ListenConfig{Control: set}).Listen(context.Background(), "tcp", net.JoinHostPort(peer.Addr.String(), "0"))
		return err
	})
	t.Cleanup(func() { l.Close() })
	accepted := make(chan error)
	go func() {
		c, err := l.Accept()
		if err == nil && control != "" {
			err = setControl(c, "reno")
		}
		accepted <- err
		if err == nil {
			io.Copy(c, c)
		}
	}()
	c, err := (&net.Dialer{Control: set}).Dial("tcp", l.Addr().String())
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { c.Close() })
	qt.Assert(t, qt.IsNil(<-accepted))
	return connection{c}
}

// echo listens at the peer, as a plain server does.
func echo(t *testing.T, peer nstest.End) net.Listener {
	t.Helper()
	var l net.Listener
	nstest.Do(t, peer.NS, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(peer.Addr.String(), "0"))
		return err
	})
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	return l
}

func setControl(c net.Conn, name string) error {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	return socket.SetControl(raw, name)
}

func controlOf(t *testing.T, c net.Conn) string {
	t.Helper()
	name, err := socket.Control(c.(*net.TCPConn))
	qt.Assert(t, qt.IsNil(err))
	return name
}

// flows checks that bytes come back.
func (c connection) flows(t *testing.T) {
	t.Helper()
	const n = 20_000
	qt.Assert(t, qt.IsNil(c.SetDeadline(time.Now().Add(10*time.Second))))
	_, err := c.Write(make([]byte, n))
	qt.Assert(t, qt.IsNil(err))
	_, err = io.ReadFull(c, make([]byte, n))
	qt.Assert(t, qt.IsNil(err))
}

func TestUpChangeDown(t *testing.T) {
	_, peer := wire(t)
	h := host.New()
	qt.Assert(t, qt.DeepEquals(up(t, small), map[string]string{"control_pcn": host.Added, "np": host.Added, "rp": host.Added, "stamp": host.Added, "syn": host.Added}))
	qt.Check(t, qt.IsTrue(available(t, "pcn")))
	before := pinnedFiles(t)

	c := connect(t, peer, "pcn")
	c.flows(t)
	flows, err := h.Flows()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(flows, 1))
	qt.Check(t, qt.Equals(flows[0].Src.String(), c.LocalAddr().String()))
	qt.Check(t, qt.Equals(flows[0].Doubt, "new"), qt.Commentf("nothing marked its packets"))
	qt.Check(t, qt.IsTrue(flows[0].Window > 0), qt.Commentf("%g packets", flows[0].Window))

	// Again changes nothing.
	for what, did := range up(t, small) {
		qt.Check(t, qt.Equals(did, host.Kept), qt.Commentf("%s", what))
	}
	qt.Check(t, qt.DeepEquals(pinnedFiles(t), before))
	s, err := h.Status(context.Background(), parse(t, small))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))

	// Other parameters, in place: the links are the same, and the connection lives on in the flow table.
	other := strings.NewReplacer("pcn: {}", "pcn: {w_min: 1/64}", "1ms", "2ms", "stamp: {interfaces: [veth0]}", "").Replace(small)
	s, err = h.Status(context.Background(), parse(t, other))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(s.Differences, []string{
		`control_pcn: w_min is "0.0078125", "0.015625" is configured`,
		`control_pcn: burst is "250us", "500us" is configured`,
		`control_pcn: T is "1ms", "2ms" is configured`,
		`control_pcn: rtt is "1ms", "2ms" is configured`,
		`np: T is "1ms", "2ms" is configured`,
		`rp: cnp_interval is "500us", "1ms" is configured`,
		"stamp runs, and is not configured",
	}))
	ids, pins := linkIDs(t), mapPins(t)
	qt.Assert(t, qt.DeepEquals(up(t, other), map[string]string{"control_pcn": host.Changed, "np": host.Changed, "rp": host.Changed, "stamp": host.Removed, "syn": host.Kept}))
	for id := range linkIDs(t) {
		qt.Check(t, qt.IsTrue(ids[id]), qt.Commentf("link %d is new", id))
	}
	for name, pin := range mapPins(t) {
		if name == "map_flows" || slices.Contains(npState, name) {
			qt.Check(t, qt.Equals(pin, pins[name]), qt.Commentf("%s is pinned again", name))
		}
	}
	qt.Check(t, qt.Equals(controlOf(t, c.Conn), "pcn"))
	c.flows(t)
	after := connect(t, peer, "pcn")
	after.flows(t)
	flows, err = h.Flows()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(flows, 2))

	// Down takes all, and the connections live on.
	_, err = h.Down(context.Background())
	qt.Assert(t, qt.IsNil(err))
	leavesNothing(t)
	c.flows(t)
	after.flows(t)
	qt.Check(t, qt.ErrorIs(setControl(connect(t, peer, "").Conn, "pcn"), unix.ENOENT))
}

// Each control that there is runs: registered, with the reaction point that its flows hear CNPs by, its
// connections in its flow table; one takes the place of another.
func TestEachControlRuns(t *testing.T) {
	_, peer := wire(t)
	before := ""
	for _, name := range host.ControlNames() {
		const network = "line_rate: 1Gbps\nrtt: 1ms\n"
		text := network + "controls: {" + name + ": {}}\n"
		want := map[string]string{"control_" + name: host.Added}
		if before != "" {
			want["control_"+before] = host.Removed
		}
		qt.Assert(t, qt.DeepEquals(up(t, text), want))
		qt.Check(t, qt.IsTrue(available(t, name)))
		qt.Check(t, qt.IsTrue(before == "" || !available(t, before)))
		c := connect(t, peer, name)
		c.flows(t)
		flows, err := host.New().Flows()
		qt.Assert(t, qt.IsNil(err))
		hasFlows := name != "pcn_line"
		qt.Check(t, qt.Equals(len(flows) == 1, hasFlows), qt.Commentf("%s: %+v", name, flows))
		s, err := host.New().Status(context.Background(), parse(t, text))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))
		c.Close()
		if parse(t, text).HearsCNPs() {
			qt.Check(t, qt.DeepEquals(up(t, text+"rp: {interfaces: [veth0]}\n"), map[string]string{
				"control_" + name: host.Kept, "rp": host.Added, "syn": host.Added,
			}))
			floor := map[string]string{"pcn": "1Mbps", "dcqcn": "100Mbps", "ibcc": "62.5Mbps"}[name]
			qt.Check(t, qt.SliceContains(settingsOf(t, "rp"), host.Setting{Key: "min_rate", Value: floor}))
			up(t, text)
		}
		before = name
	}
}

// A control of the user's own runs as those that come along do: its parameters and flows are shown, with
// the statistics of its algorithm, also to a process that does not have its object.
func TestOwnControl(t *testing.T) {
	_, peer := wire(t)
	object, err := os.ReadFile(ownObject)
	qt.Assert(t, qt.IsNil(err))
	c := &host.Config{LineRate: 1e9, RTT: config.Millisecond}
	qt.Assert(t, qt.IsNil(c.Controls.AddObject(object)))
	qt.Check(t, qt.ErrorMatches(c.Controls.AddObject(object), "congestion control dctcpr is given twice: .*"))
	qt.Assert(t, qt.IsNil(c.Check("test")))
	h := host.New()
	for _, want := range []string{host.Added, host.Kept} {
		changes, err := h.Up(context.Background(), c)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.SliceContains(changes, host.Change{Component: "control_dctcpr", What: want}))
	}
	connection := connect(t, peer, "dctcpr")
	connection.flows(t)

	settings := settingsOf(t, "control_dctcpr")
	for _, want := range []host.Setting{
		{Key: "line_rate", Value: "1Gbps"}, {Key: "g", Value: "0.0625"}, {Key: "interval", Value: "0ns"},
		{Key: "max_flows", Value: "65536"}, {Key: "rtt", Value: "1ms"},
	} {
		qt.Check(t, qt.SliceContains(settings, want))
	}
	s, err := h.Status(context.Background(), c)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))
	qt.Check(t, qt.Equals(s.Components[0].Counts["flows"], 1))
	flows, err := h.Flows()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(flows, 1))
	qt.Check(t, qt.Equals(flows[0].Src.String(), connection.LocalAddr().String()))
	qt.Check(t, qt.Equals(flows[0].Control, "dctcpr"))
	qt.Check(t, qt.IsTrue(flows[0].SendRateBps > 0 && flows[0].SendRateBps <= 1e9), qt.Commentf("%+v", flows))
	stats, values := flows[0].Stats()
	qt.Assert(t, qt.HasLen(stats, 1))
	qt.Check(t, qt.Equals(stats[0].Key, "alpha"))
	qt.Check(t, qt.IsTrue(values[0] > 0 && values[0] <= 1), qt.Commentf("%g", values[0]))
}

// settingsOf returns the settings of a component that runs.
func settingsOf(t *testing.T, component string) []host.Setting {
	t.Helper()
	s := statusOf(t)
	i := slices.IndexFunc(s.Components, func(c host.ComponentStatus) bool { return c.Name == component })
	qt.Assert(t, qt.IsTrue(i >= 0), qt.Commentf("%+v", s))
	return s.Components[i].Settings
}

// Where ACKs tell of marks, CNPs that come nevertheless are heard as before.
func TestReactionPointBesideACKs(t *testing.T) {
	wire(t)
	text := strings.Replace(small, "pcn: {}", "pcn: {feedback: ack}", 1)
	qt.Check(t, qt.DeepEquals(up(t, text), map[string]string{
		"control_pcn": host.Added, "np": host.Added, "rp": host.Added, "stamp": host.Added, "syn": host.Added,
	}))
}

// What another process pinned is there after it.
func TestOutlivesTheLoader(t *testing.T) {
	_, peer := wire(t)
	run(t, light)
	connect(t, peer, "pcn").flows(t)
	run(t, "down")
	leavesNothing(t)
}

func childProcess(what string) *exec.Cmd {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), childEnv+"="+what)
	return c
}

func run(t *testing.T, what string) {
	t.Helper()
	out, err := childProcess(what).CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
}

func pinnedFiles(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(host.DefaultRoot, func(path string, d os.DirEntry, err error) error {
		names = append(names, path)
		if err == nil && !d.IsDir() {
			info, err := d.Info()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(info.Mode().Perm()&0o077, 0), qt.Commentf("%s is open to others", path))
		}
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	qt.Assert(t, qt.IsNil(err))
	return names
}

// mapPin is a pin and what it pins.
type mapPin struct {
	inode uint64
	id    ebpf.MapID
}

// mapPins returns the pins of maps by their names. Of several with one name it has the last.
func mapPins(t *testing.T) map[string]mapPin {
	t.Helper()
	pins := map[string]mapPin{}
	for _, path := range pinnedFiles(t) {
		if !strings.HasPrefix(filepath.Base(path), "map_") {
			continue
		}
		m, err := ebpf.LoadPinnedMap(path, nil)
		qt.Assert(t, qt.IsNil(err))
		info, err := m.Info()
		qt.Assert(t, qt.IsNil(err))
		m.Close()
		id, _ := info.ID()
		var stat unix.Stat_t
		qt.Assert(t, qt.IsNil(unix.Stat(path, &stat)))
		pins[filepath.Base(path)] = mapPin{stat.Ino, id}
	}
	return pins
}

// npState are the pins of maps that have state of one another.
var npState = []string{"map_np_flows", "map_np_live", "map_np_sweeper"}

// NP's flows are removed by a list and a timer in other maps. If a killed upgrade left the flows
// alone, they would stay for ever: then all of them are new.
func TestMapsOfOneStateStayTogether(t *testing.T) {
	wire(t)
	for _, lost := range npState {
		up(t, small)
		before := mapPins(t)
		for _, path := range pinnedFiles(t) {
			if filepath.Base(path) == lost {
				qt.Assert(t, qt.IsNil(os.Remove(path)))
			}
		}
		up(t, strings.ReplaceAll(small, "1ms", "2ms"))
		after := mapPins(t)
		for _, name := range npState {
			qt.Check(t, qt.Not(qt.Equals(after[name].id, before[name].id)),
				qt.Commentf("%s was lost, and %s is the old one", lost, name))
		}
		qt.Check(t, qt.Equals(after["map_np_counts"].id, before["map_np_counts"].id))
	}
}

func linkIDs(t *testing.T) map[link.ID]bool {
	t.Helper()
	ids := map[link.ID]bool{}
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		ids[it.ID] = true
	}
	qt.Assert(t, qt.IsNil(it.Err()))
	return ids
}

// A failure after most is done undoes all of it: the last thing is a cgroup that is none.
func TestFailureRestores(t *testing.T) {
	_, peer := wire(t)
	h := host.New()
	broken := light + "cgroups: [{path: " + t.TempDir() + ", control: pcn}]\n"
	_, err := h.Up(context.Background(), parse(t, broken))
	qt.Assert(t, qt.ErrorMatches(err, "attach .*cgroup_.*"))
	_, err = host.New().Preview(context.Background(), parse(t, broken))
	qt.Assert(t, qt.ErrorMatches(err, "cgroup .* is no cgroup of version 2: .*"))
	leavesNothing(t)

	up(t, light)
	c := connect(t, peer, "pcn")
	pins, ids := pinnedFiles(t), linkIDs(t)
	changed := strings.NewReplacer("pcn: {}", "pcn: {w_min: 1/64}", "stamp: {interfaces: [veth0]}", "stamp: {interfaces: [veth0], data_dscp: 8}").Replace(broken)
	_, err = h.Up(context.Background(), parse(t, changed))
	qt.Assert(t, qt.ErrorMatches(err, "attach .*cgroup_.*"))
	qt.Check(t, qt.DeepEquals(pinnedFiles(t), pins))
	qt.Check(t, qt.DeepEquals(linkIDs(t), ids))
	s, err := h.Status(context.Background(), parse(t, light))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))
	for what, did := range up(t, light) {
		qt.Check(t, qt.Equals(did, host.Kept), qt.Commentf("%s", what))
	}
	c.flows(t)
}

// Each kill takes seconds of CPU in the microVM. go test ./host -run TestKill -timeout 30m -args -kills 100
var kills = flag.Int("kills", 20, "how often TestKill kills")

// Whenever a process of ours is killed, traffic flows, the next start is clean, and down leaves nothing.
func TestKill(t *testing.T) {
	vmtest.NeedsDebian(t) // changes take no time on our kernel
	_, peer := wire(t)
	other := strings.NewReplacer("pcn: {}", "pcn: {w_min: 1/64}", "stamp: {interfaces: [veth0]}", "").Replace(light)
	began := time.Now()
	run(t, light)
	whole := time.Since(began)
	c := connect(t, peer, "pcn")
	rng := rand.New(rand.NewPCG(1, 2))
	interrupted := 0
	for i := range *kills {
		what := []string{light, other, "down", light, other}[i%5]
		p := childProcess(what)
		qt.Assert(t, qt.IsNil(p.Start()))
		if i%2 == 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(whole))))
		} else {
			waitForChange(2 * whole)
		}
		p.Process.Kill()
		p.Wait()
		for _, one := range statusOf(t).Components {
			if len(one.Problems) > 0 {
				interrupted++
				break
			}
		}
		c.flows(t)
		if i%10 == 9 {
			up(t, light)
			s, err := host.New().Status(context.Background(), parse(t, light))
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))
			connect(t, peer, "pcn").flows(t)
		}
		if i%20 == 19 {
			_, err := host.New().Down(context.Background())
			qt.Assert(t, qt.IsNil(err))
			leavesNothing(t)
			c.flows(t)
		}
	}
	t.Logf("%d kills, %d of them in the midst of a change; a whole start takes %v", *kills, interrupted, whole)
}

// waitForChange waits until a component is being changed, but not longer than patience.
func waitForChange(patience time.Duration) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Microsecond) {
		folders, _ := filepath.Glob(host.DefaultRoot + "/*")
		for _, f := range folders {
			if _, err := os.Stat(f + "/state"); errors.Is(err, os.ErrNotExist) {
				return
			}
		}
	}
}

func statusOf(t *testing.T) *host.Status {
	t.Helper()
	s, err := host.New().Status(context.Background(), nil)
	qt.Assert(t, qt.IsNil(err))
	return s
}

// A cgroup's new connections have its control, on both sides; others do not.
func TestCgroup(t *testing.T) {
	_, peer := wire(t)
	const path = "/sys/fs/cgroup/pcn_test"
	qt.Assert(t, qt.IsNil(os.Mkdir(path, 0o755)))
	t.Cleanup(func() {
		os.WriteFile("/sys/fs/cgroup/cgroup.procs", []byte("0"), 0)
		nstest.Eventually(t, "the cgroup goes", func() bool { return os.Remove(path) == nil })
	})
	up(t, light+"cgroups: [{path: "+path+", control: pcn}]\n")
	before := connect(t, peer, "")
	qt.Check(t, qt.Not(qt.Equals(controlOf(t, before.Conn), "pcn")))
	qt.Assert(t, qt.IsNil(os.WriteFile(path+"/cgroup.procs", []byte("0"), 0)))
	c := connect(t, peer, "")
	qt.Check(t, qt.Equals(controlOf(t, c.Conn), "pcn"))
	c.flows(t)
	flows, err := host.New().Flows()
	qt.Assert(t, qt.IsNil(err))
	at := slices.IndexFunc(flows, func(f host.LiveFlow) bool { return f.Src.String() == c.LocalAddr().String() })
	qt.Assert(t, qt.IsTrue(at >= 0))
	qt.Check(t, qt.IsTrue(flows[at].ECN), qt.Commentf("the listener was in the cgroup too"))
}

func TestStatusOfNothing(t *testing.T) {
	s := statusOf(t)
	qt.Check(t, qt.HasLen(s.Components, 0))
	_, err := host.New().Control("pcn")
	qt.Check(t, qt.ErrorIs(err, loader.ErrNoFlow))
	changes, err := host.New().Down(context.Background())
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(changes, 0))
}

// A server whose control does not need ECN agrees to it where SYNs are made plain, and only there. Taking that away and
// back leaves the rest alone.
func TestECNWithPlainServers(t *testing.T) {
	_, peer := wire(t)
	nstest.Sysctl(t, peer.NS, "tcp_ecn", "2")
	auto := strings.Replace(light, "pcn: {}", "pcn: {feedback: auto}", 1) + "rtt: 1ms\n"
	with, without := auto+"ecn: {interfaces: [veth0]}\n", auto+"ecn: {interfaces: []}\n"
	hasECN := func() bool {
		c := connectWith(t, peer, "pcn")
		c.flows(t)
		flows, err := host.New().Flows()
		qt.Assert(t, qt.IsNil(err))
		at := slices.IndexFunc(flows, func(f host.LiveFlow) bool { return f.Src.String() == c.LocalAddr().String() })
		qt.Assert(t, qt.IsTrue(at >= 0))
		return flows[at].ECN
	}
	qt.Assert(t, qt.DeepEquals(up(t, without), map[string]string{"control_pcn": host.Added, "stamp": host.Added}))
	qt.Check(t, qt.IsFalse(hasECN()))
	qt.Assert(t, qt.DeepEquals(up(t, with), map[string]string{"control_pcn": host.Kept, "stamp": host.Kept, "syn": host.Added}))
	qt.Check(t, qt.IsTrue(hasECN()))
	qt.Assert(t, qt.DeepEquals(up(t, with), map[string]string{"control_pcn": host.Kept, "stamp": host.Kept, "syn": host.Kept}))
	s, err := host.New().Status(context.Background(), parse(t, with))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))
	qt.Check(t, qt.IsTrue(slices.ContainsFunc(s.Components[0].Settings, func(s host.Setting) bool {
		return s == host.Setting{Key: "feedback", Value: "auto"}
	})), qt.Commentf("%+v", s))
	qt.Assert(t, qt.DeepEquals(up(t, without), map[string]string{"control_pcn": host.Kept, "stamp": host.Kept, "syn": host.Removed}))
	qt.Check(t, qt.IsFalse(hasECN()))
}

// T comes from handshakes, and stays what it was when it was first measured.
func TestMeasuredT(t *testing.T) {
	_, peer := wire(t)
	var l net.Listener
	nstest.Do(t, peer.NS, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(peer.Addr.String(), "7777"))
		return err
	})
	text := "line_rate: 1Gbps\nrtt_to: [\"10.7.0.2:7777\"]\ncontrols: {ldcp: {}}\n"
	up(t, text)
	l.Close()
	for what, did := range up(t, text) {
		qt.Check(t, qt.Equals(did, host.Kept), qt.Commentf("%s", what))
	}
	_, err := host.New().Down(context.Background())
	qt.Assert(t, qt.IsNil(err))
	_, err = host.New().Up(context.Background(), parse(t, text))
	qt.Assert(t, qt.ErrorMatches(err, "measure the round trip to 10.7.0.2:7777: .*"))
	leavesNothing(t)
}

// A flow that found the table full is a problem for as long as it lives; one that is new is none.
// Status, Prometheus and the health say so.
func TestSeeingDoubt(t *testing.T) {
	_, peer := wire(t)
	h := host.New()
	text := strings.Replace(light, "pcn: {}", "pcn: {max_flows: 1}", 1)
	up(t, text)
	see := func() (*host.Status, int, string) {
		s, err := h.Status(context.Background(), parse(t, text))
		qt.Assert(t, qt.IsNil(err))
		get := func(path string) *httptest.ResponseRecorder {
			r := httptest.NewRecorder()
			h.Handler(1).ServeHTTP(r, httptest.NewRequest(http.MethodGet, path, nil))
			return r
		}
		return s, get("/healthz").Code, get("/metrics").Body.String()
	}
	connect(t, peer, "pcn").flows(t)
	s, code, metrics := see()
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))
	qt.Check(t, qt.Equals(code, http.StatusOK))
	for _, want := range []string{
		`pcn_flows_in_doubt{control="pcn",reason="new"} 1`,
		`pcn_flows_in_doubt{control="pcn",reason="no_marks"} 0`,
		`pcn_events_total{component="control_pcn",event="no_entry"} 0`,
	} {
		qt.Check(t, qt.StringContains(metrics, want+"\n"))
	}

	second := connect(t, peer, "pcn")
	second.flows(t)
	s, code, _ = see()
	qt.Assert(t, qt.HasLen(s.Components[0].Problems, 1))
	qt.Check(t, qt.Matches(s.Components[0].Problems[0],
		"[1-9] live flows found the flow table full and have a TCP window: raise max_flows"))
	qt.Check(t, qt.Equals(code, http.StatusServiceUnavailable))
}

// What Prometheus gets, and the health; a trace of a flow.
func TestSeeing(t *testing.T) {
	vmtest.NeedsDebian(t) // a tracepoint
	_, peer := wire(t)
	h := host.New()
	s := httptest.NewServer(h.Handler(1))
	t.Cleanup(s.Close)
	get := func(path string) (int, string) {
		r, err := http.Get(s.URL + path)
		qt.Assert(t, qt.IsNil(err))
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		qt.Assert(t, qt.IsNil(err))
		return r.StatusCode, string(body)
	}
	code, text := get("/healthz")
	qt.Check(t, qt.Equals(code, http.StatusServiceUnavailable))
	qt.Check(t, qt.Equals(text, "nothing runs: pcn host up\n"))
	up(t, strings.Replace(small, "pcn: {}", "pcn: {careful_start: false}", 1))
	var first connection
	for i := range 3 {
		c := connect(t, peer, "pcn")
		if i == 0 {
			first = c
		}
	}
	first.flows(t)
	code, text = get("/healthz")
	qt.Check(t, qt.Equals(code, http.StatusOK), qt.Commentf("%s", text))
	_, text = get("/metrics")
	for _, want := range []string{
		`pcn_flows{control="pcn"} 3`, `pcn_component_ok{component="np"} 1`,
		`pcn_events_total{component="rp",event="bad_icrc"} 0`, "pcn_read_error 0",
	} {
		qt.Check(t, qt.StringContains(text, want+"\n"))
	}
	qt.Check(t, qt.Equals(strings.Count(text, "\npcn_flow_send_rate_bps{"), 1))

	f, err := h.FindFlow(first.LocalAddr().String())
	qt.Assert(t, qt.IsNil(err))
	_, err = h.FindFlow("10.7.0.1")
	qt.Check(t, qt.ErrorMatches(err, `flow "10.7.0.1" is ambiguous: 3 flows match.*`))
	_, err = h.FindFlow("nowhere")
	qt.Check(t, qt.ErrorIs(err, loader.ErrNoFlow))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	events, traced := make(chan host.TraceEvent, 1), make(chan error, 1)
	go func() {
		traced <- h.Trace(ctx, f, true, func(e host.TraceEvent) error {
			select {
			case events <- e:
			default:
			}
			return nil
		})
	}()
	for e := (host.TraceEvent{}); e.FlowKey != f.FlowKey; {
		first.flows(t)
		select {
		case e = <-events:
			qt.Check(t, qt.Not(qt.Equals(e.What(), "")))
			qt.Check(t, qt.IsTrue(e.SendRateBps > 0 && e.SendRateBps <= 1e9), qt.Commentf("%d", e.SendRateBps))
		case err := <-traced:
			t.Fatal("the trace ended: ", err)
		default:
		}
	}
	cancel()
	qt.Check(t, qt.IsNil(<-traced))
}
