// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tests/packaging/debtest"
)

const (
	oldVersion = "0.0.1"
	newVersion = "0.1.0+test"

	key = "/etc/pcn/cnp.key" // as the shipped file has it
)

var deb string // the package under test

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pcn-boot-")
	if err == nil {
		deb, err = debtest.Build(dir, newVersion)
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// The units start as shipped, with the file as shipped; an upgrade loses no connection; nothing is
// left in the kernel after a stop and a removal, and no file after a purge.
func TestPackageUnderSystemd(t *testing.T) {
	nstest.RequireRoot(t)
	nstest.Turn(t)
	before := nstest.KernelObjects(t)
	t.Run("life", func(t *testing.T) {
		m := boot(t, own)
		files := m.files(t)
		m.install(t, debtest.Repack(t, debtest.Unpack(t, deb), oldVersion))
		m.checkNothingRuns(t)
		out, _ := m.try(t, "systemctl", "is-enabled", "pcn-host", "pcn-metrics")
		qt.Check(t, qt.Equals(out, "disabled\ndisabled\n"))

		_, err := m.try(t, "systemctl", "start", "pcn-host")
		qt.Check(t, qt.IsNotNil(err))
		qt.Check(t, qt.StringContains(m.journal(t), "make it once, on one host"))
		m.checkNothingRuns(t)
		m.run(t, "pcn", "host", "up", "--keys", key)
		m.run(t, "systemctl", "enable", "--now", "pcn-host", "pcn-metrics")
		m.checkRuns(t)
		c := m.connect(t, 500)
		qt.Check(t, qt.IsNil(c.exchange()))
		lost := c.exchangeUntil(func() { m.install(t, deb) })
		qt.Check(t, qt.IsNil(lost))
		qt.Check(t, qt.IsNil(c.exchange()))
		m.checkRuns(t)
		qt.Check(t, qt.StringContains(m.run(t, "dpkg", "-s", "pcn"), "Version: "+newVersion))
		qt.Check(t, qt.StringContains(m.run(t, "pcn", "host", "status"), "flows              500"))

		m.run(t, "systemctl", "stop", "pcn-host")
		m.checkNothingRuns(t)
		m.run(t, "systemctl", "start", "pcn-host")
		m.checkRuns(t)
		m.run(t, "dpkg", "-r", "pcn")
		m.checkNothingRuns(t)
		qt.Check(t, qt.IsNil(c.exchange())) // with the control that they have
		m.run(t, "dpkg", "-P", "pcn")
		m.run(t, "rm", "-r", filepath.Dir(key)) // the administrator's
		qt.Check(t, qt.DeepEquals(m.files(t), files))
	})
	// what other processes loaded meanwhile goes too, when their tests end: each is shorter
	const patience = 5 * time.Minute
	left := nstest.KernelObjects(t)
	gone := nstest.InTime(patience, func() bool {
		now := nstest.KernelObjects(t)
		left = slices.DeleteFunc(left, func(object string) bool {
			return slices.Contains(before, object) || !slices.Contains(now, object)
		})
		return len(left) == 0
	})
	qt.Check(t, qt.IsTrue(gone), qt.Commentf("after %v the kernel has %q", patience, left))
}

// Where there is no BPF file system, as in many containers, the unit says so, and the package can
// be removed.
func TestPackageWithoutBPFFS(t *testing.T) {
	nstest.RequireRoot(t)
	nstest.Turn(t)
	for _, c := range []struct{ name, sys, says string }{
		{"not mounted", notMounted, "no BPF file system at /sys/fs/bpf, and it can't be mounted"},
		{"no folder", noFolder, "there is no /sys/fs/bpf: want a BPF file system there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := boot(t, c.sys)
			files := m.files(t)
			m.install(t, deb)
			m.run(t, "sh", "-c", "umask 077; printf %032d 7 >"+key) // up makes it, and mounts, too
			_, err := m.try(t, "systemctl", "start", "pcn-host")
			qt.Check(t, qt.IsNotNil(err))
			status := m.run(t, "systemctl", "show", "--property=ExecMainStatus", "pcn-host")
			qt.Check(t, qt.Equals(status, "ExecMainStatus=1\n")) // of pcn, not of systemd
			qt.Check(t, qt.StringContains(m.journal(t), c.says))
			m.run(t, "systemctl", "start", "pcn-metrics")
			qt.Check(t, qt.StringContains(m.get(t, "/metrics"), "pcn_read_error 0\n"))
			m.run(t, "dpkg", "-r", "pcn")
			m.run(t, "dpkg", "-P", "pcn")
			m.run(t, "rm", "-r", filepath.Dir(key)) // the administrator's
			qt.Check(t, qt.DeepEquals(m.files(t), files))
		})
	}
}

// checkRuns checks that both units run, and that all is as the shipped file has it.
func (m *machine) checkRuns(t *testing.T) {
	t.Helper()
	m.run(t, "systemctl", "is-active", "pcn-host", "pcn-metrics")
	m.run(t, "pcn", "host", "status", "--config", "/etc/pcn/host.yaml")
	qt.Check(t, qt.Equals(m.attached(t), 4)) // two of NP, RP and syn
	metrics := m.get(t, "/metrics")
	for _, name := range []string{"control_pcn", "np", "rp", "syn"} {
		line := fmt.Sprintf("pcn_component_ok{component=%q} 1\n", name)
		qt.Check(t, qt.StringContains(metrics, line))
	}
	qt.Check(t, qt.StringContains(metrics, `component="rp",event="cnp_decrease"`))
}

// checkNothingRuns checks that nothing of ours is loaded.
func (m *machine) checkNothingRuns(t *testing.T) {
	t.Helper()
	_, err := m.try(t, "test", "-e", "/sys/fs/bpf/pcn")
	qt.Check(t, qt.IsNotNil(err), qt.Commentf("/sys/fs/bpf/pcn is there"))
	_, err = loader.KernelControl("pcn")
	qt.Check(t, qt.ErrorIs(err, loader.ErrNotSupported))
	qt.Check(t, qt.Equals(m.attached(t), 0))
}

// attached is how many tc programs are at the machine's interface.
func (m *machine) attached(t *testing.T) (n int) {
	t.Helper()
	nstest.Do(t, m.ns, func() error {
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		for _, where := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
			at := link.QueryOptions{Target: device.Index, Attach: where}
			result, err := link.QueryPrograms(at)
			if err != nil {
				return err
			}
			n += len(result.Programs)
		}
		return nil
	})
	return n
}

// get asks the metrics unit for a page.
func (m *machine) get(t *testing.T, path string) string {
	t.Helper()
	client := http.Client{Timeout: nstest.Patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			// Type simple tells systemd nothing of when it listens.
			for {
				nstest.Do(t, m.ns, func() error {
					c, err = (&net.Dialer{}).DialContext(ctx, network, address)
					return nil
				})
				if !errors.Is(err, syscall.ECONNREFUSED) || ctx.Err() != nil {
					return c, err
				}
				time.Sleep(50 * time.Millisecond)
			}
		},
	}}
	response, err := client.Get("http://127.0.0.1:9818" + path)
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", m.journal(t)))
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	qt.Assert(t, qt.IsNil(err))
	return string(page)
}

// connections are open connections of the machine, each to a peer that sends back what it gets.
type connections []net.Conn

func (m *machine) connect(t *testing.T, n int) connections {
	t.Helper()
	var l net.Listener
	nstest.Do(t, m.peer.NS, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(m.peer.Addr.String(), "0"))
		return err
	})
	t.Cleanup(func() { l.Close() })
	go echo(l)
	dialer := net.Dialer{Control: socket.Choose("pcn")}
	var all connections
	nstest.Do(t, m.ns, func() error {
		for range n {
			c, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				return err
			}
			t.Cleanup(func() { c.Close() })
			all = append(all, c)
		}
		return nil
	})
	return all
}

func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}()
	}
}

// exchange checks that bytes come back on all connections.
func (c connections) exchange() error {
	var wait sync.WaitGroup
	errs := make([]error, len(c))
	for i, one := range c {
		wait.Go(func() {
			const n = 5000
			got := make([]byte, n)
			_, err := one.Write([]byte(strings.Repeat("x", n)))
			if err == nil {
				_, err = io.ReadFull(one, got)
			}
			errs[i] = err
		})
	}
	expired := time.AfterFunc(time.Minute, func() {
		for _, one := range c {
			one.Close()
		}
	})
	defer expired.Stop()
	wait.Wait()
	return errors.Join(errs...)
}

// exchangeUntil exchanges bytes on all connections, again and again, while do runs.
func (c connections) exchangeUntil(do func()) error {
	var done atomic.Bool
	failed := make(chan error)
	go func() {
		var err error
		for err == nil && !done.Load() {
			err = c.exchange()
		}
		failed <- err
	}()
	do()
	done.Store(true)
	return <-failed
}
