// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tests/packaging/debtest"
)

// The guest's folder of packages: an old one and the one under test.
const (
	debDir     = "/debs"
	oldVersion = "0.0.1"
	admin      = "/var/lib/dpkg"
)

// TestLife runs TestGuestLife in the microVM, with this machine's dpkg.
func TestLife(t *testing.T) {
	requireDeb(t)
	kernel, err := vm.Default()
	qt.Assert(t, qt.IsNil(err))
	var files []vm.File
	for _, name := range []string{
		"dpkg", "dpkg-deb", "dpkg-split", "dpkg-query", "tar", "rm", "rmdir", "diff", "ldconfig",
		"ischroot", "start-stop-daemon",
	} {
		files = append(files, program(t, name)...)
	}
	shell := program(t, "dash")
	files = append(files, shell...)
	files = append(files, vm.File{Path: "/bin/sh", Mode: 0o755, Data: shell[len(shell)-1].Data})
	for name, text := range map[string]string{"status": "", "available": "", "info/format": "1\n"} {
		files = append(files, vm.File{Path: admin + "/" + name, Mode: 0o644, Data: []byte(text)})
	}
	files = append(files, vm.File{Path: admin + "/updates/.keep", Mode: 0o644})
	dir := unpacked(t)
	for _, v := range []string{oldVersion, version} {
		data := []byte(read(t, debtest.Repack(t, dir, v)))
		files = append(files, vm.File{Path: debDir + "/" + v + ".deb", Mode: 0o644, Data: data})
	}
	res, err := vm.Run(t.Context(), vm.Config{
		Kernel: kernel, Args: []string{"-test.run=^TestGuestLife$", "-test.v"}, Dir: "/tmp",
		Files: files, HostCPU: -1, Seed: 1,
	})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("microVM: exit code %d, error %v\n%s", res.ExitCode, err, res.Console)
	}
	t.Logf("boot %v, wall %v\n%s", res.Boot, res.Wall, res.Console)
}

func program(t *testing.T, name string) []vm.File {
	t.Helper()
	path, err := exec.LookPath(name)
	qt.Assert(t, qt.IsNil(err))
	files, err := vm.Program(path)
	qt.Assert(t, qt.IsNil(err))
	return files
}

// TestGuestLife installs, upgrades while a connection runs, removes and purges. After the removal
// nothing is left in the kernel, after the purge nothing on the disk.
func TestGuestLife(t *testing.T) {
	if !guest.Inside() {
		t.Skip("TestLife runs it")
	}
	const config = "/etc/pcn/host.yaml"
	conn := connection(t)
	before := nstest.KernelObjects(t)
	dpkg := func(args ...string) {
		t.Helper()
		t.Log(command(t, "dpkg", args...))
	}

	dpkg("-i", debDir+"/"+oldVersion+".deb")
	qt.Check(t, qt.DeepEquals(nstest.KernelObjects(t), before)) // it loads nothing by itself
	const changed = "line_rate: 1Gbps\nrtt: 1ms\ncontrols: {pcn: {}}\n" +
		"np: {interfaces: [veth0]}\nrp: {interfaces: [veth0]}\n"
	qt.Assert(t, qt.IsNil(os.WriteFile(config, []byte(changed), 0o644)))
	command(t, "pcn", "host", "up")
	c := conn()
	exchange(t, c)

	running := nstest.KernelObjects(t)
	dpkg("-i", debDir+"/"+version+".deb")
	qt.Check(t, qt.DeepEquals(nstest.KernelObjects(t), running))
	qt.Check(t, qt.Equals(read(t, config), changed))
	exchange(t, c)
	flows, err := host.New().Flows()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(flows, 1))
	command(t, "pcn", "host", "status")

	dpkg("-r", "pcn")
	_, err = os.Stat(host.DefaultRoot)
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
	_, err = loader.KernelControl("pcn")
	qt.Check(t, qt.IsNotNil(err))
	exchange(t, c) // with the control that it has
	c.Close()
	nstest.Eventually(t, "the kernel has what it had before",
		func() bool { return slices.Equal(nstest.KernelObjects(t), before) })
	_, err = os.Stat("/usr/bin/pcn")
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
	qt.Check(t, qt.Equals(read(t, config), changed)) // as with every package
	dpkg("-P", "pcn")
	_, err = os.Stat("/etc/pcn")
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
}

// connection returns a function that connects to an echo server with pcn, from this host, which has
// interface veth0 from now on.
func connection(t *testing.T) func() net.Conn {
	t.Helper()
	home, err := netns.Get()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { home.Close() })
	_, peer := nstest.Veth(t, home, nstest.New(t),
		netip.MustParsePrefix("10.7.0.1/24"), netip.MustParsePrefix("10.7.0.2/24"))
	var l net.Listener
	nstest.Do(t, peer.NS, func() (err error) {
		l, err = net.Listen("tcp", peer.Addr.String()+":0")
		return err
	})
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	return func() net.Conn {
		dialer := net.Dialer{Control: socket.Choose("pcn")}
		c, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		qt.Assert(t, qt.IsNil(err))
		t.Cleanup(func() { c.Close() })
		return c
	}
}

// exchange checks that bytes come back.
func exchange(t *testing.T, c net.Conn) {
	t.Helper()
	const n = 20_000
	qt.Assert(t, qt.IsNil(c.SetDeadline(time.Now().Add(10*time.Second))))
	_, err := c.Write(make([]byte, n))
	qt.Assert(t, qt.IsNil(err))
	_, err = io.ReadFull(c, make([]byte, n))
	qt.Assert(t, qt.IsNil(err))
}
