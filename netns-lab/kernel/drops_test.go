// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// TestBusySince: a share of the ticks, and 0 if there were none.
func TestBusySince(t *testing.T) {
	before := cpuTimes{busy: 100, total: 1000}
	qt.Check(t, qt.Equals(cpuTimes{busy: 175, total: 1100}.busySince(before), 0.75))
	qt.Check(t, qt.Equals(before.busySince(before), 0))
}

// TestParsersOnThisKernel: the files have the form that is expected, and every counter is there.
func TestParsersOnThisKernel(t *testing.T) {
	proc, err := procfs.NewDefaultFS()
	qt.Assert(t, qt.IsNil(err))
	drops := map[string]uint64{}
	qt.Assert(t, qt.IsNil(addNamespaceDrops(drops, proc)))
	for proto, names := range netstatDrops {
		for _, name := range names {
			_, ok := drops[strings.ToLower(proto)+" "+name]
			qt.Check(t, qt.IsTrue(ok), qt.Commentf("%s %s", proto, name))
		}
	}
	for _, place := range []string{"device receive", "device transmit"} {
		_, ok := drops[place]
		qt.Check(t, qt.IsTrue(ok), qt.Commentf("%s", place))
	}
	backlog, err := kernelDrops(nil)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(backlog, 1))
	cpu, err := readCPUTimes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(cpu.busy <= cpu.total))
	qt.Check(t, qt.Equals(cpu.busy > 0, !virtualTime(t)))
	available, err := availableBytes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(available > 1<<20))
	release, err := kernelRelease()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Matches(release, `\d+\.\d+.*`))
}

// TestDropsAreOfTheNamespace: counters are those of the namespace that the thread is in.
func TestDropsAreOfTheNamespace(t *testing.T) {
	n, err := newNamespace("counted")
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() {
		qt.Check(t, qt.IsNil(namespaces{n}.close()))
		qt.Check(t, qt.IsNil(deleteNamespace("counted")))
	})
	drops := map[string]uint64{}
	proc, err := procfs.NewDefaultFS()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(n.do(func() error {
		thread, err := proc.Thread(os.Getpid(), unix.Gettid())
		if err != nil {
			return err
		}
		devices, err := thread.NetDev()
		qt.Check(t, qt.HasLen(devices, 1)) // lo
		return errors.Join(err, addNamespaceDrops(drops, proc))
	})))
	qt.Check(t, qt.Equals(drops["device receive"], 0))
}
