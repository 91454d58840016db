// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/loader/ns/nstest"
)

// pcn costs at most 5% more CPU a byte than the kernel's own controls at the same rate: iperf3 between two namespaces, a long
// transfer less a short one, the median of several in turn. One skb is one packet, so no offload hides what each ACK costs.
func TestCPUPerByte(t *testing.T) {
	if os.Getenv(ownKernelEnv) == "" {
		t.Skip("measures this machine: set " + ownKernelEnv + "=1, as root, to run it")
	}
	const rounds, short, long = 9, 1 << 20, 9 << 20
	registered(t, registerPCN)
	controls := []string{"pcn", "bbr", "cubic"}
	all := map[string][]float64{}
	for range rounds {
		for _, control := range controls {
			if !available(t, control) {
				t.Skip("this kernel lacks ", control)
			}
			cost := cpuOf(t, control, long) - cpuOf(t, control, short)
			all[control] = append(all[control], float64(cost.Nanoseconds())/(long-short))
		}
	}
	median := func(control string) float64 {
		slices.Sort(all[control])
		return all[control][rounds/2]
	}
	for _, other := range controls[1:] {
		ratio := median("pcn") / median(other)
		t.Logf("pcn %.3f ns a byte, %s %.3f: %.3f times", median("pcn"), other, median(other), ratio)
		qt.Check(t, qt.IsTrue(ratio < 1.05), qt.Commentf("%.3f times %s: %.3f", ratio, other, all))
	}
}

// cpuOf is the CPU time of both ends of a transfer at 200 Mbit/s.
func cpuOf(t *testing.T, control string, bytes int) time.Duration {
	t.Helper()
	p := newPath(t)
	for _, e := range []end{p.client, p.server} {
		nstest.Sysctl(t, e.NS, "tcp_ecn", "1")
	}
	server := p.server.start(t, "iperf3", "-s", "-1", "-B", p.server.Addr.String())
	nstest.Eventually(t, "iperf3 listens", func() bool { return p.server.listens(t, 5201) })
	client := p.client.start(t, "iperf3", "-c", p.server.Addr.String(), "-C", control, "--fq-rate", "200M", "-n", strconv.Itoa(bytes))
	client.finish(t)
	server.finish(t)
	cpu := time.Duration(0)
	for _, c := range []*command{client, server} {
		cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	return cpu
}
