// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tests/hosts"
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

// Without a queue, controls of hosts reach 1/1.05 of CUBIC's throughput on one CPU, with as many
// bytes in flight. The microVM's time is a count of instructions, so what this machine does
// meanwhile changes nothing.
func TestInstructionsPerByte(t *testing.T) {
	runTest(t, "TestGuestInstructions", kernelOf(t, "7", "trixie-backports"))
}

// TestGuestInstructions is the microVM's part of TestInstructionsPerByte.
func TestGuestInstructions(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs in the microVM of TestInstructionsPerByte")
	}
	beds := []hosts.Options{
		{MTU: 1500}, {MTU: 9000}, {MTU: 1500, IPv6: true}, {MTU: 9000, IPv6: true},
	}
	controls, sum := []string{"pcn", "ldcp", "pcn_dctcp"}, map[string]float64{}
	nothing := func(*testing.T) {}
	for _, o := range beds {
		cubic := unshaped(t, o, "cubic", nothing)
		for _, control := range controls {
			ratio := cubic / unshaped(t, o, control, nothing)
			t.Logf("MTU %d, IPv6 %t: %s takes %.3f of cubic's instructions", o.MTU, o.IPv6,
				control, ratio)
			sum[control] += ratio
		}
	}
	// A single bed's varies by up to 5% with the order in which sender and receiver run.
	for control, ratios := range sum {
		mean := ratios / float64(len(beds))
		qt.Check(t, qt.IsTrue(mean < 1.05), qt.Commentf("%s takes %.3f", control, mean))
	}
	if testing.Short() {
		return // the rest only logs
	}
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	qt.Assert(t, qt.IsNil(err))
	defer stats.Close()
	for _, control := range controls {
		unshaped(t, beds[len(beds)-1], control, logPrograms)
	}
}

// logPrograms logs what the kernel counted of each BPF program: time, here instructions.
func logPrograms(t *testing.T) {
	t.Helper()
	for id := ebpf.ProgramID(0); ; {
		var err error
		if id, err = ebpf.ProgramGetNextID(id); errors.Is(err, os.ErrNotExist) {
			return
		}
		qt.Assert(t, qt.IsNil(err))
		p, err := ebpf.NewProgramFromID(id)
		qt.Assert(t, qt.IsNil(err))
		info, err := p.Info()
		qt.Assert(t, qt.IsNil(err))
		stats, err := p.Stats()
		qt.Assert(t, qt.IsNil(err))
		p.Close()
		if stats.RunCount > 0 {
			t.Logf("%s: %d runs of %d instructions, some 95 of them to count", info.Name,
				stats.RunCount, uint64(stats.Runtime)/stats.RunCount)
		}
	}
}

// unshaped returns the throughput between two hosts whose CPU is the bottleneck. It calls after
// while their programs are still loaded.
func unshaped(
	t *testing.T, o hosts.Options, control string, after func(*testing.T),
) (bps float64) {
	t.Run(control, func(t *testing.T) {
		o.Offloads, o.Senders, o.Nagle, o.ReceiveBuffer = hosts.Supers, 1, true, 1e6
		b := hosts.New(t, o)
		// the microVM is as fast as a quarter of a machine, where T would be 1 ms
		network := scheme.Network{LineRateBps: loader.MaxRateBps, BaseRTTNs: 4e6,
			FrameBytes: 1514, Host: true}
		b.Control(control, network, map[string]string{"T": "4ms"})
		conns := []hosts.Connection{b.Connect(0, control)}
		bps = b.Fill(conns, 50*time.Millisecond, 100*time.Millisecond)[0]
		after(t)
	})
	return bps
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
