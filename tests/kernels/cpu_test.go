// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"pcn/loader/ns/nstest"
)

const cpuFile = "cpu.json"

// pcn costs at most 5% more CPU a byte than the kernel's own controls at the same rate. The microVM counts instructions,
// so this is exact, whatever else this machine does.
func TestCPUPerByte(t *testing.T) {
	if os.Getenv(ownKernelEnv) == "" {
		t.Skip("takes a minute: set " + ownKernelEnv + "=1 to run it")
	}
	text, err := fs.ReadFile(runTest(t, "TestGuestCPU", "7", "trixie-backports"), cpuFile)
	qt.Assert(t, qt.IsNil(err))
	var perByte map[string]float64
	qt.Assert(t, qt.IsNil(json.Unmarshal(text, &perByte)))
	for _, other := range []string{"bbr", "cubic"} {
		ratio := perByte["pcn"] / perByte[other]
		t.Logf("pcn %.1f instructions a byte, %s %.1f: %.3f times", perByte["pcn"], other, perByte[other], ratio)
		qt.Check(t, qt.IsTrue(perByte[other] > 1))
		qt.Check(t, qt.IsTrue(ratio < 1.05), qt.Commentf("%.3f times %s", ratio, other))
	}
}

// TestGuestCPU measures what iperf3 between two namespaces costs under each control, for TestCPUPerByte: a long transfer less
// a short one, the median of several in turn. One skb is one packet, so no offload hides what each ACK costs.
func TestGuestCPU(t *testing.T) {
	dir := os.Getenv(resultDirEnv)
	if dir == "" {
		t.Skip("TestCPUPerByte runs it, in a microVM")
	}
	const rounds, short, long = 3, 1 << 20, 17 << 20
	registered(t, registerPCN)
	controls := []string{"pcn", "bbr", "cubic"}
	all := map[string][]float64{}
	for range rounds {
		for _, control := range controls {
			cost := busyDuring(t, control, long) - busyDuring(t, control, short)
			all[control] = append(all[control], float64(cost.Nanoseconds())/(long-short))
		}
	}
	medians := map[string]float64{}
	for _, control := range controls {
		slices.Sort(all[control])
		t.Logf("%s: %.2f ns a byte", control, all[control])
		medians[control] = all[control][rounds/2]
	}
	text, err := json.Marshal(medians)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, cpuFile), text, 0o644)))
}

// busyDuring is how long the guest's CPU was not idle in a transfer at 200 Mbit/s.
func busyDuring(t *testing.T, control string, bytes int) time.Duration {
	t.Helper()
	p := newPath(t)
	for _, e := range []end{p.client, p.server} {
		e.sysctl(t, "tcp_ecn", "1")
	}
	server := p.server.start(t, "iperf3", "-s", "-1", "-B", p.server.Addr.String())
	nstest.Eventually(t, "iperf3 listens", func() bool { return p.server.listens(t, 5201) })
	start, idle := time.Now(), idleTime(t)
	p.client.start(t, "iperf3", "-c", p.server.Addr.String(), "-C", control, "--fq-rate", "200M", "-n", strconv.Itoa(bytes)).finish(t)
	server.finish(t)
	return time.Since(start) - (idleTime(t) - idle)
}

// idleTime is the first CPU's since boot.
func idleTime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/timer_list")
	qt.Assert(t, qt.IsNil(err))
	m := regexp.MustCompile(`\.idle_sleeptime\s*: (\d+) nsecs`).FindSubmatch(text)
	qt.Assert(t, qt.HasLen(m, 2))
	ns, err := strconv.ParseInt(string(m[1]), 10, 64)
	qt.Assert(t, qt.IsNil(err))
	return time.Duration(ns)
}
