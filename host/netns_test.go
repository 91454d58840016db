// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader/ns"
)

// points has what belongs to a namespace, and a control, which is the machine's.
const points = `
line_rate: 1Gbps
controls: {pcn: {}}
stamp: {interfaces: [veth0]}
ecn: {interfaces: [veth0]}
`

// named makes a namespace with a file, as ip netns add does.
func named(t *testing.T, name string) netns.NsHandle {
	t.Helper()
	home, err := netns.Get()
	qt.Assert(t, qt.IsNil(err))
	defer home.Close()
	var h netns.NsHandle
	nstest.Do(t, home, func() (err error) {
		h, err = netns.NewNamed(name)
		return err
	})
	t.Cleanup(func() {
		h.Close()
		netns.DeleteNamed(name)
	})
	return h
}

// changesIn runs Up or Down in a namespace, and returns what happened by component.
func changesIn(
	t *testing.T, name string, do func(*host.Host) ([]host.Change, error),
) map[string]host.Change {
	t.Helper()
	out := map[string]host.Change{}
	qt.Assert(t, qt.IsNil(host.In(name, func() error {
		changes, err := do(host.New())
		for _, c := range changes {
			key := c.Component
			if c.Namespace != "" {
				key += " in " + c.Namespace
			}
			out[key] = c
		}
		return err
	})))
	return out
}

func upIn(t *testing.T, name, text string) map[string]host.Change {
	t.Helper()
	c := parse(t, text)
	return changesIn(t, name, func(h *host.Host) ([]host.Change, error) {
		return h.Up(context.Background(), c)
	})
}

func downIn(t *testing.T, name string) map[string]host.Change {
	t.Helper()
	return changesIn(t, name, func(h *host.Host) ([]host.Change, error) {
		return h.Down(context.Background())
	})
}

func whats(changes map[string]host.Change) map[string]string {
	out := map[string]string{}
	for key, c := range changes {
		out[key] = c.What
	}
	return out
}

func componentNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, c := range statusOf(t).Components {
		names = append(names, c.Name+" "+strings.Join(c.Where, ","))
	}
	return names
}

// Two namespaces with one BPF file system do not take each other's components, though their
// interfaces have one name, and even one index. Controls stay as long as one of them wants them.
func TestTwoNamespaces(t *testing.T) {
	wire(t)
	blue, far := named(t, "blue"), nstest.New(t)
	_, farEnd := nstest.Veth(t, blue, far, netip.MustParsePrefix("10.8.0.1/24"),
		netip.MustParsePrefix("10.8.0.2/24"))
	up(t, points)
	before := pinnedFiles(t)
	qt.Check(t, qt.DeepEquals(whats(upIn(t, "blue", points)), map[string]string{
		"control_pcn": host.Kept, "stamp": host.Added, "syn": host.Added,
	}))
	for _, pin := range before {
		qt.Check(t, qt.SliceContains(pinnedFiles(t), pin))
	}
	qt.Check(t, qt.ContentEquals(componentNames(t), []string{
		"control_pcn ", "stamp veth0", "stamp@blue veth0", "syn veth0", "syn@blue veth0",
	}))
	s, err := host.New().Status(context.Background(), parse(t, points))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))

	// What one changes of the machine's is said, and what one does not want stays for the other.
	other := strings.Replace(points, "pcn: {}", "pcn: {w_min: 1/64}", 1)
	changes := upIn(t, "blue", other)
	qt.Check(t, qt.Equals(changes["control_pcn"].What, host.Changed))
	qt.Check(t, qt.StringContains(changes["control_pcn"].Note, "use it too: "))
	changes = upIn(t, "blue", "stamp: {interfaces: [veth0]}\n")
	qt.Check(t, qt.DeepEquals(whats(changes), map[string]string{
		"control_pcn": host.Kept, "stamp": host.Kept, "syn": host.Removed,
	}))
	s, err = host.New().Status(context.Background(), parse(t, points))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(s.Differences,
		[]string{`control_pcn: w_min is "0.015625", "0.0078125" is configured`}))

	qt.Check(t, qt.DeepEquals(whats(downIn(t, "")), map[string]string{
		"control_pcn": host.Removed, "stamp": host.Removed, "syn": host.Removed,
	}))
	qt.Check(t, qt.DeepEquals(componentNames(t), []string{"stamp@blue veth0"}))

	// When the namespace goes, its rest goes with the next change.
	up(t, points)
	blue.Close()
	qt.Assert(t, qt.IsNil(netns.DeleteNamed("blue")))
	// A netlink connection of this test still holds the namespace, so its interface goes by hand.
	qt.Assert(t, qt.IsNil(nstest.Netlink(t, far).LinkDel(farEnd.Link)))
	changes = upIn(t, "", points)
	qt.Check(t, qt.Equals(changes["stamp in blue"].What, host.Removed))
}

func TestDownAll(t *testing.T) {
	wire(t)
	nstest.Veth(t, named(t, "blue"), nstest.New(t), netip.MustParsePrefix("10.8.0.1/24"),
		netip.MustParsePrefix("10.8.0.2/24"))
	upIn(t, "blue", points)
	up(t, points)
	qt.Check(t, qt.DeepEquals(whats(downIn(t, "blue")), map[string]string{
		"control_pcn": host.Kept, "stamp": host.Removed, "syn": host.Removed,
	}))
	upIn(t, "blue", points)
	changes := changesIn(t, "", func(h *host.Host) ([]host.Change, error) {
		return h.DownAll(context.Background())
	})
	qt.Check(t, qt.DeepEquals(whats(changes), map[string]string{
		"control_pcn": host.Removed, "stamp": host.Removed, "syn": host.Removed,
		"stamp in blue": host.Removed, "syn in blue": host.Removed,
	}))
	leavesNothing(t)
}

func chooseIn(t *testing.T, name, control string) {
	t.Helper()
	qt.Assert(t, qt.IsNil(host.In(name, func() error {
		return os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(control), 0)
	})))
}

// A namespace that chose a control by sysctl holds the operations that were registered then. After
// a change its new connections have the new ones: they are in the new flow table.
func TestNamespacesSelectAgain(t *testing.T) {
	wire(t)
	blue := named(t, "blue")
	far, _ := nstest.Veth(t, nstest.New(t), blue, netip.MustParsePrefix("10.8.0.2/24"),
		netip.MustParsePrefix("10.8.0.1/24"))
	up(t, light)
	chooseIn(t, "blue", "pcn")
	dial := func() net.Conn {
		t.Helper()
		l := echo(t, far)
		var c net.Conn
		qt.Assert(t, qt.IsNil(host.In("blue", func() (err error) {
			c, err = net.Dial("tcp", l.Addr().String())
			return err
		})))
		t.Cleanup(func() { c.Close() })
		return c
	}
	isKnown := func(c net.Conn) bool {
		flows, err := host.New().Flows()
		qt.Assert(t, qt.IsNil(err))
		return slices.ContainsFunc(flows, func(f host.LiveFlow) bool {
			return f.Src.String() == c.LocalAddr().String()
		})
	}
	qt.Check(t, qt.IsTrue(isKnown(dial())))
	chosen, _, err := host.Choices([]string{"pcn"})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(chosen, 1))
	qt.Check(t, qt.Equals(chosen[0].Namespace.String()+" "+chosen[0].Control, "blue pcn"))

	var changes map[string]host.Change
	for allowed, advised := range map[string]string{"reno": "reno", "reno cubic": "cubic"} {
		allow(t, allowed)
		changes = downIn(t, "")
		qt.Check(t, qt.Equals(changes["control_pcn in blue"].What, host.StillChosen))
		_, advice, _ := strings.Cut(changes["control_pcn in blue"].Note, ": ")
		qt.Check(t, qt.Equals(advice,
			"ip netns exec blue sysctl -w net.ipv4.tcp_congestion_control="+advised))
		changes = upIn(t, "", light)
	}
	qt.Check(t, qt.Equals(changes["control_pcn in blue"].What, host.Reselected))
	qt.Check(t, qt.IsTrue(isKnown(dial())))

	// Another size of the flow table is another table.
	sized := strings.Replace(light, "pcn: {}", "pcn: {max_flows: 100}", 1)
	changes = upIn(t, "", sized)
	qt.Check(t, qt.Equals(changes["control_pcn in blue"].What, host.Reselected))
	qt.Check(t, qt.IsTrue(isKnown(dial())))
	qt.Check(t, qt.DeepEquals(whats(upIn(t, "", sized)), map[string]string{
		"control_pcn": host.Kept, "stamp": host.Kept,
	}))
	chooseIn(t, "blue", "reno")
}

// allow sets which controls namespaces may choose, of those of the kernel.
func allow(t *testing.T, controls string) {
	t.Helper()
	const file = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
	before, err := os.ReadFile(file)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(controls), 0)))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(os.WriteFile(file, before, 0))) })
}

// The BPF file system that Up mounts goes with what was pinned in it; one that was there stays.
func TestMountGoes(t *testing.T) {
	dir := filepath.Dir(host.DefaultRoot)
	isMounted := func() bool {
		var fsinfo unix.Statfs_t
		qt.Assert(t, qt.IsNil(unix.Statfs(dir, &fsinfo)))
		return fsinfo.Type == unix.BPF_FS_MAGIC
	}
	wire(t)
	upAndDown := func() {
		t.Helper()
		up(t, light)
		qt.Check(t, qt.IsTrue(isMounted()))
		_, err := host.New().Down(t.Context())
		qt.Assert(t, qt.IsNil(err))
	}
	upAndDown()
	qt.Assert(t, qt.IsTrue(isMounted()))
	qt.Assert(t, qt.IsNil(unix.Unmount(dir, 0)))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(unix.Mount("bpf", dir, "bpf", 0, ""))) })
	upAndDown()
	qt.Check(t, qt.IsFalse(isMounted()))

	up(t, light)
	other := filepath.Join(dir, "of_another")
	qt.Assert(t, qt.IsNil(os.Mkdir(other, 0o700)))
	_, err := host.New().Down(t.Context())
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(isMounted()))
	qt.Assert(t, qt.IsNil(os.Remove(other)))
	upAndDown()
	qt.Check(t, qt.IsFalse(isMounted()))
}

// ip netns exec mounts a /sys of its own: what is pinned there would be gone with the command.
func TestPrivateMounts(t *testing.T) {
	wire(t)
	for _, what := range []string{light, "down", "flows"} {
		c := childProcess(what)
		c.Env = append(c.Env, childPrivateEnv+"=1")
		c.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		qt.Check(t, qt.ErrorAs(err, &exit))
		qt.Check(t, qt.StringContains(string(out), "the mounts of this process are its own"))
		qt.Check(t, qt.StringContains(string(out), "--netns NAME"))
	}
}

// childPrivateEnv makes a child mount a /sys of its own first, as ip netns exec does.
const childPrivateEnv = "PCN_HOST_CHILD_PRIVATE"

func mountPrivateSys() error {
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := unix.Unmount("/sys", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Mount("sysfs", "/sys", "sysfs", 0, "")
}

func TestIn(t *testing.T) {
	named(t, "blue")
	nothing := func() error { return nil }
	qt.Check(t, qt.IsNil(host.In("blue", nothing)))
	qt.Check(t, qt.IsNil(host.In("/run/netns/blue", nothing)))
	qt.Check(t, qt.IsNil(host.In("/proc/self/ns/net", nothing)))
	qt.Check(t, qt.ErrorMatches(host.In("none", nothing),
		"network namespace none: .*no such file.*: give a name that ip netns list shows.*"))
	qt.Check(t, qt.ErrorMatches(host.In("/proc/self/status", nothing),
		".*/proc/self/status is not the file of a network namespace"))
}

// An interface that is missing does not hide the rest, nor one that has another name.
func TestStatusOfMissingAndRenamedInterfaces(t *testing.T) {
	here, _ := wire(t)
	up(t, points)
	missing := strings.Replace(points, "ecn: {interfaces: [veth0]}",
		"ecn: {interfaces: [veth0]}\nwred: {interfaces: [eth7], kmin: 1KB}", 1)
	s, err := host.New().Status(context.Background(), parse(t, missing))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(s.Components, 3))
	qt.Assert(t, qt.HasLen(s.Differences, 2))
	qt.Check(t, qt.StringContains(s.Differences[0], "wred: interface eth7: "))
	qt.Check(t, qt.Equals(s.Differences[1], "wred does not run"))
	_, err = host.New().Up(context.Background(), parse(t, missing))
	qt.Check(t, qt.ErrorIs(err, host.ErrNotReady))
	qt.Check(t, qt.ErrorMatches(err, "wred: interface eth7: .*"))

	// The line rate is that of the interface, which is not there.
	unknown := "controls: {pcn: {}}\nstamp: {interfaces: [eth7]}\n"
	s, err = host.New().Status(context.Background(), parse(t, unknown))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(s.Components, 3))
	qt.Check(t, qt.StringContains(s.Differences[0], "link speed of interface eth7 is not known"))

	nl := nstest.Netlink(t, here.NS)
	rename := func(to string) {
		t.Helper()
		qt.Assert(t, qt.IsNil(nl.LinkSetDown(here.Link)))
		qt.Assert(t, qt.IsNil(nl.LinkSetName(here.Link, to)))
		qt.Assert(t, qt.IsNil(nl.LinkSetUp(here.Link)))
	}
	rename("eth0.7") // as a VLAN's
	s = statusOf(t)
	qt.Check(t, qt.DeepEquals(s.Components[1].Problems, []string{"interface veth0 is now called " +
		"eth0.7: change the configuration, and run pcn host up"}))
	qt.Check(t, qt.DeepEquals(s.Components[1].Where, []string{"eth0.7"}))
	ids := linkIDs(t)
	qt.Check(t, qt.DeepEquals(up(t, strings.ReplaceAll(points, "veth0", "eth0.7")),
		map[string]string{"control_pcn": host.Kept, "stamp": host.Changed, "syn": host.Changed}))
	qt.Check(t, qt.DeepEquals(linkIDs(t), ids)) // the links stayed
	qt.Check(t, qt.IsTrue(statusOf(t).OK()))
	rename("\x1b[31m") // a terminal would obey it
	qt.Check(t, qt.DeepEquals(statusOf(t).Components[1].Where, []string{`"\x1b[31m"`}))
	qt.Check(t, qt.IsFalse(strings.Contains(statusOf(t).Components[1].Problems[0], "\x1b")))
	rename("veth0")
	up(t, points)
	qt.Check(t, qt.DeepEquals(linkIDs(t), ids))
}

// What version 0.1.0 pinned, by the index of the interface and without a namespace, is taken over.
func TestTakesOverEarlierPins(t *testing.T) {
	here, _ := wire(t)
	up(t, points)
	before := pinnedFiles(t)
	ids := linkIDs(t)
	for _, name := range []string{"stamp", "syn"} {
		pins, err := host.PinsOf(name)
		qt.Assert(t, qt.IsNil(err))
		old := filepath.Join(host.DefaultRoot, name)
		qt.Assert(t, qt.IsNil(os.Rename(pins, old)))
		qt.Assert(t, qt.IsNil(os.Rename(filepath.Join(old, "link_veth0:"+name),
			filepath.Join(old, host.EarlierPin(here.Index(), name)))))
	}
	s := statusOf(t)
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))
	qt.Check(t, qt.DeepEquals(up(t, points), map[string]string{
		"control_pcn": host.Kept, "stamp": host.Changed, "syn": host.Changed,
	}))
	qt.Check(t, qt.DeepEquals(pinnedFiles(t), before))
	qt.Check(t, qt.DeepEquals(linkIDs(t), ids))
}

// A preview says what Up then does, and changes nothing.
func TestPreview(t *testing.T) {
	wire(t)
	preview := func(text string) map[string]host.Change {
		t.Helper()
		c := parse(t, text)
		pins, ids := pinnedFiles(t), linkIDs(t)
		changes := changesIn(t, "", func(h *host.Host) ([]host.Change, error) {
			return h.Preview(context.Background(), c)
		})
		qt.Check(t, qt.DeepEquals(pinnedFiles(t), pins))
		nstest.Eventually(t, "no link is left", func() bool { return len(linkIDs(t)) == len(ids) })
		return changes
	}
	other := strings.NewReplacer("pcn: {}", "pcn: {w_min: 1/64}",
		"ecn: {interfaces: [veth0]}", "ecn: {interfaces: []}").Replace(points)
	for _, text := range []string{points, points, other} {
		would := preview(text)
		qt.Check(t, qt.DeepEquals(whats(would), whats(upIn(t, "", text))))
		if text == other {
			qt.Check(t, qt.Equals(would["control_pcn"].Note, "w_min 0.0078125 to 0.015625"))
		}
	}
	missing := parse(t, "stamp: {interfaces: [eth7]}\n")
	_, err := host.New().Preview(context.Background(), missing)
	qt.Check(t, qt.ErrorIs(err, host.ErrNotReady))
}

// Without its rights Up says which it lacks, and changes nothing.
func TestMissingRights(t *testing.T) {
	home, err := netns.Get()
	qt.Assert(t, qt.IsNil(err))
	defer home.Close()
	c := parse(t, light)
	for bit, want := range map[uint]string{
		unix.CAP_BPF:       "this process lacks CAP_BPF: run it as root, .*",
		unix.CAP_NET_ADMIN: "this process lacks CAP_NET_ADMIN: .*",
		unix.CAP_PERFMON:   "this process lacks CAP_PERFMON: .*",
	} {
		err := ns.Do(home, func() error { // the thread ends, and with it what it lacks
			if err := dropCapabilities(unix.CAP_SYS_ADMIN, bit); err != nil {
				return err
			}
			_, err := host.New().Up(context.Background(), c)
			return err
		})
		qt.Check(t, qt.ErrorMatches(err, want))
		qt.Check(t, qt.ErrorIs(err, unix.EPERM))
	}
}

// What the kernel refuses is told with what the process lacks.
func TestRefusals(t *testing.T) {
	wire(t)
	named(t, "blue")
	upIn(t, "", light)
	t.Cleanup(func() { downIn(t, "") })
	const nobody = 65534
	for _, c := range []struct {
		what  string
		user  uint32
		lacks uintptr // capability; 0: none
		want  string
	}{
		{"in blue", nobody, 0, "enter network namespace blue: operation not permitted: this " +
			"process is user 65534, not root, and lacks CAP_SYS_ADMIN, CAP_SYS_PTRACE: run it " +
			"as root, or see Rights in pcn docs host"},
		{"in blue", 0, unix.CAP_SYS_ADMIN, "enter network namespace blue: operation not " +
			"permitted: this process lacks CAP_SYS_ADMIN: run it as root, .*"},
		{"in /proc/1/ns/net", nobody, 0, "network namespace /proc/1/ns/net: .*denied: " +
			"this process is user 65534, .*"},
		{"status", nobody, 0, "read pins: .*: permission denied: this process is user 65534, " +
			"not root, and lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON: run it as root, .*"},
		{"key", nobody, 0, "read pins: open .*: permission denied: this process is user .*"},
		{"down", nobody, 0, "(lock|read pins): .*: permission denied: this process is user .*"},
		{light, nobody, 0, "this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON: .*"},
	} {
		out := refused(t, c.what, c.user, c.lacks)
		qt.Check(t, qt.Matches(out, c.want+"\n"), qt.Commentf("%+v", c))
	}
}

// In a BPF file system that all users may write to, one may have made PCN's folder first.
func TestHostileFolder(t *testing.T) {
	wire(t)
	upIn(t, "", light)
	downIn(t, "")
	const nobody = 65534
	for _, make := range []func(path string) error{
		func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, nobody, nobody))
		},
		func(path string) error { return errors.Join(os.Mkdir(path, 0), os.Chmod(path, 0o777)) },
		func(path string) error { return os.Symlink("/sys/fs/bpf", path) },
	} {
		qt.Assert(t, qt.IsNil(make(host.DefaultRoot)))
		for _, what := range []string{light, "status", "key", "down"} {
			out, err := childProcess(what).CombinedOutput()
			qt.Check(t, qt.IsNotNil(err), qt.Commentf(what))
			qt.Check(t, qt.StringContains(string(out), "want a folder that only root may change"))
		}
		qt.Assert(t, qt.IsNil(os.Remove(host.DefaultRoot)))
	}
}

// Of namespaces that Up could not enter it says how many there are, if a control is new.
func TestClosedNamespaces(t *testing.T) {
	wire(t)
	named(t, "blue")
	t.Cleanup(func() { downIn(t, "") })
	for _, want := range []string{
		"network namespaces: not selected again: [1-9].* could not be entered .*\n", // it is new
		"", // it is kept
	} {
		out, err := childWithout(light, 0, unix.CAP_SYS_ADMIN)
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
		qt.Check(t, qt.Matches(out, want))
	}
}

// refused runs a child that must fail, and returns what it says.
func refused(t *testing.T, what string, user uint32, lacks uintptr) string {
	t.Helper()
	out, err := childWithout(what, user, lacks)
	var exit *exec.ExitError
	qt.Check(t, qt.ErrorAs(err, &exit))
	return out
}

// childWithout runs a child as a user, without a capability if there is one, and returns what it
// says.
func childWithout(what string, user uint32, lacks uintptr) (string, error) {
	c := childProcess(what)
	c.SysProcAttr = &unix.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	var out []byte
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends, and with it what it lacks
		if lacks != 0 {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, lacks, 0, 0, 0); err != nil {
				done <- err
				return
			}
		}
		var err error
		out, err = c.CombinedOutput()
		done <- err
	}()
	err := <-done
	return string(out), err
}

func dropCapabilities(bits ...uint) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for _, bit := range bits {
		data[bit/32].Effective &^= 1 << (bit % 32)
	}
	return unix.Capset(&header, &data[0])
}
