// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// singlePackets has 400 packets at uneven times, each a flow of its own, for one host.
func singlePackets(noise string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
name: single
engine: sim
topology: {kind: star, hosts: 4, rate: 10Gbps, delay: 2us}
schemes: [pfc]
warmup: 0ms
duration: 3ms
noise: {%s}
bursts:
`, noise)
	for i := range 400 {
		fmt.Fprintf(&b, "  - {name: P%03d, from: H%d, to: R0, at: %dns, size: 500B}\n",
			i, i%4, 5000*i+i*i%4999)
	}
	return b.String()
}

// ends returns when the packets are seen, in order, each behind the one before.
func ends(t *testing.T, noise string) []int64 {
	t.Helper()
	var times []int64
	for _, f := range simulate(t, parse(t, singlePackets(noise)), "pfc").Flows {
		qt.Assert(t, qt.IsNotNil(f.EndNs))
		times = append(times, *f.EndNs)
	}
	slices.Sort(times)
	return times
}

// A host looks 10 us after the first packet that it has not seen, and sees all that is there.
func TestModeration(t *testing.T) {
	arrivals, seen := ends(t, ""), ends(t, "moderation: 10us")
	var want []int64
	for len(want) < len(arrivals) {
		look := arrivals[len(want)] + 10_000
		for len(want) < len(arrivals) && arrivals[len(want)] <= look {
			want = append(want, look)
		}
	}
	qt.Check(t, qt.DeepEquals(seen, want))
	looks := len(slices.Compact(want))
	qt.Check(t, qt.IsTrue(looks > 100 && looks < 200), qt.Commentf("%d", looks))
}

// The delay of a look is exponential: its mean is what the file says, a share of exp(-1) is longer
// than that, and none is longer than 6.3 times it. It moves with the seed alone.
func TestScheduling(t *testing.T) {
	const mean = 500 // so short that nearly each packet has a look of its own
	arrivals, seen := ends(t, ""), ends(t, "scheduling: 500ns")
	var sum, longer, looks float64
	for i, at := range arrivals {
		if i > 0 && seen[i] == seen[i-1] {
			continue
		}
		late := float64(seen[i] - at)
		qt.Assert(t, qt.IsTrue(late >= 0 && late <= 6.3*mean), qt.Commentf("%g", late))
		looks++
		sum += late
		if late > mean {
			longer++
		}
	}
	// 390 looks: six standard errors of the mean are 0.3 of it, and of the share 0.15
	qt.Check(t, qt.IsTrue(looks > 350), qt.Commentf("%g", looks))
	qt.Check(t, qt.IsTrue(sum/looks > 0.7*mean && sum/looks < 1.3*mean),
		qt.Commentf("%g", sum/looks))
	qt.Check(t, qt.IsTrue(longer/looks > 0.22 && longer/looks < 0.52),
		qt.Commentf("%g", longer/looks))
	qt.Check(t, qt.DeepEquals(ends(t, "scheduling: 500ns"), seen))
	qt.Check(t, qt.IsFalse(slices.Equal(ends(t, "scheduling: 500ns}\nseed: 2\nfigures: {"), seen)))
}

// With GRO a receiver sends an ACK for what it sees at a look, and all is acknowledged.
func TestGRO(t *testing.T) {
	acks := func(noise string) (acks, data uint64) {
		text := strings.Split(singlePackets(noise), "bursts:")[0] +
			"flows: [{name: F, from: H0, to: R0, start: 0ms, size: 1MB}]\n"
		run := simulate(t, parse(t, text), "pfc")
		qt.Assert(t, qt.IsNotNil(run.Flows[0].EndNs))
		for _, p := range run.Ports {
			switch p.Name {
			case "R0->S0":
				acks = p.SentPackets
			case "S0->R0":
				data = p.SentPackets
			}
		}
		return acks, data
	}
	each, data := acks("moderation: 10us")
	qt.Check(t, qt.Equals(each, data))
	once, again := acks("moderation: 10us, gro: true")
	qt.Check(t, qt.Equals(again, data))
	// 10 us of 10 Gbit/s are 12.5 packets of 1000 bytes
	qt.Check(t, qt.IsTrue(once >= data/14 && once <= data/11), qt.Commentf("%d of %d", once, data))
	// 125 KB at a look: two ACKs, at most 64 KB each
	large, _ := acks("moderation: 100us, gro: true")
	qt.Check(t, qt.IsTrue(large > data/66 && large < data/40), qt.Commentf("%d of %d", large, data))
}
