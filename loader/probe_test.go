// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

// configured says whether the running kernel was built with the option.
func configured(t *testing.T, option string) bool {
	t.Helper()
	f, err := os.Open("/proc/config.gz")
	if err != nil {
		t.Skip("can't tell what this kernel has: use one with CONFIG_IKCONFIG_PROC: ", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	qt.Assert(t, qt.IsNil(err))
	config, err := io.ReadAll(z)
	qt.Assert(t, qt.IsNil(err))
	return bytes.Contains(config, []byte("\n"+option+"=y\n"))
}

// Probes agree with the kernel's configuration, and say what it lacks and what to do.
func TestProbes(t *testing.T) {
	for _, c := range []struct {
		option string
		probe  func() error
		lack   string
	}{
		{"CONFIG_DEBUG_INFO_BTF", loader.HaveBTF, "this kernel has no type information .*"},
		{"CONFIG_BPF_JIT", loader.HaveTCPStructOps,
			"this kernel lacks BPF congestion controls .*5.6.*"},
		{"CONFIG_NET_SCH_BPF", loader.HaveQdisc,
			`this kernel lacks CONFIG_NET_SCH_BPF \(6.16\+\): run without --native to use the microVM: .*`},
		{"CONFIG_NET_XGRESS", loader.HaveTCX, "this kernel lacks tcx .*6.6.*"},
	} {
		t.Run(c.option, func(t *testing.T) {
			err := c.probe()
			if configured(t, c.option) {
				qt.Assert(t, qt.IsNil(err))
				return
			}
			qt.Assert(t, qt.ErrorIs(err, loader.ErrNotSupported))
			qt.Assert(t, qt.ErrorMatches(err, c.lack))
		})
	}
}

func TestPermission(t *testing.T) {
	nstest.RequireRoot(t)
	qt.Assert(t, qt.IsNil(loader.HavePermission()))
	var probe, register, load error
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread that has lost its rights goes too
		var none [2]unix.CapUserData
		err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
		if err == nil {
			probe = loader.HavePermission()
			_, register = loader.Register(pcn(40e9))
			_, load = tc.LoadStamp(tc.StampOptions{})
		}
		done <- err
	}()
	qt.Assert(t, qt.IsNil(<-done))
	const advice = "no permission to load BPF programs: run as root, or with CAP_BPF and CAP_NET_ADMIN: .*"
	qt.Assert(t, qt.ErrorMatches(probe, advice))
	qt.Assert(t, qt.ErrorMatches(register, "congestion control pcn: load: "+advice))
	qt.Assert(t, qt.ErrorMatches(load, "load tc program stamp: "+advice))
	qt.Assert(t, qt.ErrorIs(probe, unix.EPERM))
}
