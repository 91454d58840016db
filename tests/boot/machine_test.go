// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
)

// machine is a booted Debian, with the interface eth0 to a peer.
type machine struct {
	root   string // its files
	leader string // its process 1, as this machine counts them
	ns     netns.NsHandle
	peer   nstest.End
}

// What a machine has at /sys/fs/bpf.
const (
	own        = "a BPF file system of its own"
	notMounted = "nothing"
	noFolder   = "not even the folder; then it has no eth0"
)

// boot boots a copy of Debian.
func boot(t *testing.T, bpffs string) *machine {
	t.Helper()
	m := &machine{root: filepath.Join(t.TempDir(), "root")}
	local(t, "cp", "-a", "--reflink=auto", debianRoot(t), m.root)
	args := []string{
		"--directory", m.root, "--boot", "--register=no", "--keep-unit", "--console=pipe",
		"--notify-ready=yes", "--capability=CAP_BPF,CAP_PERFMON,CAP_NET_ADMIN",
		"--system-call-filter=bpf",
	}
	if bpffs == noFolder {
		m.start(t, append(args, "--private-network"))
		var err error
		m.ns, err = netns.GetFromPath(filepath.Join("/proc", m.leader, "ns/net"))
		qt.Assert(t, qt.IsNil(err))
		t.Cleanup(func() { m.ns.Close() })
		return m
	}
	m.ns = nstest.New(t)
	var here nstest.End
	here, m.peer = nstest.Veth(t, m.ns, nstest.New(t), netip.MustParsePrefix("10.7.0.1/24"),
		netip.MustParsePrefix("10.7.0.2/24"))
	renamed(t, m.ns, here, "eth0")
	args = append(args, fmt.Sprintf("--network-namespace-path=/proc/%d/fd/%d", os.Getpid(), m.ns))
	if bpffs == own {
		dir := t.TempDir()
		qt.Assert(t, qt.IsNil(unix.Mount("bpf", dir, "bpf", 0, "mode=0700")))
		t.Cleanup(func() { qt.Check(t, qt.IsNil(unix.Unmount(dir, 0))) })
		args = append(args, "--bind="+dir+":/sys/fs/bpf")
	}
	m.start(t, args)
	return m
}

// renamed gives an interface another name.
func renamed(t *testing.T, h netns.NsHandle, e nstest.End, name string) {
	t.Helper()
	nl := nstest.Netlink(t, h)
	qt.Assert(t, qt.IsNil(nl.LinkSetDown(e.Link)))
	qt.Assert(t, qt.IsNil(nl.LinkSetName(e.Link, name)))
	qt.Assert(t, qt.IsNil(nl.LinkSetUp(e.Link)))
}

// debianRoot is the Debian that machines are copies of. It is made once and kept in the cache.
func debianRoot(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"systemd-nspawn", "debootstrap", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here, to boot Debian in a container: scripts/setup.sh --dev installs it",
				program)
		}
	}
	cache, err := os.UserCacheDir()
	qt.Assert(t, qt.IsNil(err))
	root := filepath.Join(cache, "pcn/debian-root")
	local(t, "../../scripts/debian-root.sh", root)
	return root
}

// local runs a program on this machine.
func local(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s %v\n%s", name, args, out))
}

// start starts the container and waits until systemd has booted.
func (m *machine) start(t *testing.T, args []string) {
	t.Helper()
	address := filepath.Join(t.TempDir(), "notify")
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { ready.Close() })
	var console bytes.Buffer
	cmd := exec.Command("systemd-nspawn", args...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+address)
	cmd.Stdout, cmd.Stderr = &console, &console
	qt.Assert(t, qt.IsNil(cmd.Start()))
	t.Cleanup(func() {
		stopped := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer stopped.Stop()
		qt.Check(t, qt.IsNil(cmd.Process.Signal(unix.SIGTERM))) // it shuts down
		err := cmd.Wait()
		if t.Failed() {
			t.Logf("the container ended with %v:\n%s", err, console.String())
		}
	})
	qt.Assert(t, qt.IsNil(ready.SetReadDeadline(time.Now().Add(time.Minute))))
	isReady := false
	for text := make([]byte, 4096); !isReady || m.leader == ""; {
		n, err := ready.Read(text)
		qt.Assert(t, qt.IsNil(err), qt.Commentf("wait until it has booted"))
		lines := strings.Split(string(text[:n]), "\n")
		isReady = isReady || slices.Contains(lines, "READY=1")
		for _, line := range lines {
			if pid, ok := strings.CutPrefix(line, "X_NSPAWN_LEADER_PID="); ok {
				m.leader = pid
			}
		}
	}
}

// try runs a program on the machine.
func (m *machine) try(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	enter := []string{"--target", m.leader, "--mount", "--uts", "--ipc", "--net", "--pid", "--root",
		"--wd=/", "env", "-i", "DEBIAN_FRONTEND=noninteractive",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", name}
	out, err := exec.CommandContext(t.Context(), "nsenter", append(enter, args...)...).
		CombinedOutput()
	return string(out), err
}

// run runs a program on the machine, which must succeed.
func (m *machine) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := m.try(t, name, args...)
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s %v\n%s\n%s", name, args, out, m.journal(t)))
	return out
}

// journal is what the package's units said.
func (m *machine) journal(t *testing.T) string {
	t.Helper()
	out, _ := m.try(t, "journalctl", "--no-pager", "-o", "cat", "-u", "pcn-*")
	return out
}

// install installs the package of a version.
func (m *machine) install(t *testing.T, deb string) string {
	t.Helper()
	const to = "/tmp/pcn.deb"
	data, err := os.ReadFile(deb)
	qt.Assert(t, qt.IsNil(err))
	inside := filepath.Join("/proc", m.leader, "root", to)
	qt.Assert(t, qt.IsNil(os.WriteFile(inside, data, 0o644)))
	out := m.run(t, "dpkg", "-i", to)
	qt.Assert(t, qt.IsNil(os.Remove(inside)))
	return out
}

// changing is what changes while a machine runs, whoever does what.
var changing = regexp.MustCompile(
	`^/(run|tmp|proc|sys|dev|var/(log|tmp|cache|lib/(dpkg|systemd)))(/|$)`)

// files are the paths of all files of the machine but for those that change.
func (m *machine) files(t *testing.T) (paths []string) {
	t.Helper()
	qt.Assert(t, qt.IsNil(filepath.WalkDir(m.root, func(p string, _ fs.DirEntry, err error) error {
		if name := strings.TrimPrefix(p, m.root); !changing.MatchString(name) {
			paths = append(paths, name)
		}
		return err
	})))
	return paths
}
