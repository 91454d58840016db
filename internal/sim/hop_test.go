// SPDX-License-Identifier: Apache-2.0

//go:build !js

package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// hopExperiment is a network at 30% load.
const hopExperiment = `
name: hops
engine: sim
topology: {file: hops.topology.txt}
frame: 1051B
workload: {cdf: fb-hadoop, load: 0.3}
schemes: [dcqcn]
dcqcn: {set: hpcc}
warmup: 0ms
duration: %s
sample: 100us
`

// Of the leaf-spine networks in which hops are measured: hosts of a leaf, and spines.
const hopHosts, hopSpines = 16, 4

// hopTopology returns a leaf-spine network as a topology file of HPCC's simulator: hosts first,
// then leaves, then spines.
func hopTopology(leaves int) string {
	hosts := leaves * hopHosts
	var switches, links []string
	for leaf := range leaves {
		for h := range hopHosts {
			links = append(links,
				fmt.Sprintf("%d %d 100Gbps 1us 0", leaf*hopHosts+h, hosts+leaf))
		}
		for s := range hopSpines {
			links = append(links,
				fmt.Sprintf("%d %d 400Gbps 1us 0", hosts+leaf, hosts+leaves+s))
		}
	}
	for i := range leaves + hopSpines {
		switches = append(switches, fmt.Sprint(hosts+i))
	}
	return fmt.Sprintf("%d %d %d\n%s\n%s\n", hosts+len(switches), len(switches), len(links),
		strings.Join(switches, " "), strings.Join(links, "\n"))
}

// BenchmarkHop is the cost of a packet at a port, in networks of different sizes. It runs the
// simulation alone, without what builds the network and writes the results.
func BenchmarkHop(b *testing.B) {
	for _, size := range []struct {
		leaves   int
		duration string // for 20 to 30 million hops
	}{{2, "30ms"}, {19, "3ms"}, {294, "200us"}} {
		b.Run(fmt.Sprintf("nodes=%d", size.leaves*(hopHosts+1)+hopSpines), func(b *testing.B) {
			b.StopTimer()
			file := filepath.Join(b.TempDir(), "hops.yaml")
			topology := filepath.Join(filepath.Dir(file), "hops.topology.txt")
			for name, text := range map[string]string{
				file: fmt.Sprintf(hopExperiment, size.duration), topology: hopTopology(size.leaves),
			} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			e, err := experiment.Load(file)
			if err != nil {
				b.Fatal(err)
			}
			var hops uint64
			var used time.Duration
			for range b.N {
				w := worldOf(b, e, "dcqcn")
				before := cpuTime(b)
				b.StartTimer()
				err := w.run(b.Context(), func(float64) {})
				b.StopTimer()
				used += cpuTime(b) - before
				if err != nil {
					b.Fatal(err)
				}
				for i := range w.ports {
					hops += w.ports[i].counters.sentPackets
				}
			}
			b.ReportMetric(float64(used.Nanoseconds())/float64(hops), "cpu-ns/hop")
			b.ReportMetric(float64(hops)/float64(b.N), "hops/op")
		})
	}
}

// cpuTime returns the CPU time that this program has used.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
