// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// redShare is RED's definition: the share of packets to mark at this queue.
func redShare(p markRedParams, queueBytes uint64) *big.Rat {
	share := new(big.Rat).SetFrac64(int64(p.Pmax), q24One)
	switch {
	case p.Pmax == 0:
		return new(big.Rat)
	case queueBytes > p.KmaxBytes, p.AllAtKmax == 1 && queueBytes == p.KmaxBytes:
		return big.NewRat(1, 1)
	case queueBytes <= p.KminBytes:
		return new(big.Rat)
	}
	return share.Mul(share, new(big.Rat).SetFrac64(int64(queueBytes-p.KminBytes), int64(p.KmaxBytes-p.KminBytes)))
}

// countMarks counts, for each queue, the values of random that mark, out of 2^32. It takes the values from 0 on to be
// those, looks for where they end, and then that no other one marks: all around the end, and many everywhere.
func countMarks(t testing.TB, m *markers, p markRedParams, queues []uint64) []uint64 {
	t.Helper()

	const all = 1 << 32
	least, most := make([]uint64, len(queues)), make([]uint64, len(queues)) // it is in between
	for i := range most {
		most[i] = all
	}
	steps := make([]markRedStep, len(queues))
	for range 33 {
		for i, queueBytes := range queues {
			steps[i] = markRedStep{QueueBytes: queueBytes, Random: uint32(min((least[i]+most[i])/2, all-1))}
		}
		m.red(t, p, steps)
		for i, step := range steps {
			switch {
			case least[i] == most[i]:
			case step.Mark:
				least[i] = uint64(step.Random) + 1
			default:
				most[i] = uint64(step.Random)
			}
		}
	}

	const around, everywhere = 300, 300
	steps = steps[:0]
	for i, queueBytes := range queues {
		for d := range uint64(2 * around) {
			if x := least[i] + d; x >= around && x < all+around {
				steps = append(steps, markRedStep{QueueBytes: queueBytes, Random: uint32(x - around)})
			}
		}
		for j := range uint64(everywhere) {
			steps = append(steps, markRedStep{QueueBytes: queueBytes, Random: uint32(j * (all - 1) / (everywhere - 1))})
		}
	}
	m.red(t, p, steps)
	for _, step := range steps {
		for i, queueBytes := range queues {
			if queueBytes == step.QueueBytes && step.Mark != (uint64(step.Random) < least[i]) {
				t.Fatalf("queue %d bytes: random %d against %d of them that mark, params %+v", queueBytes, step.Random, least[i], p)
			}
		}
	}
	return least
}

// The share of the values of random that mark is the probability, rounded down to 2^-24.
func TestREDProbability(t *testing.T) {
	m := loadMarkers(t)

	sets := []markRedParams{
		{KminBytes: 5000, KmaxBytes: 200_000, Pmax: q24(0.01)},   // SIGCOMM 2015, Fig. 14
		{KminBytes: 40_000, KmaxBytes: 1_000_000, Pmax: q24One},  // ns3-rdma
		{KminBytes: 160_000, KmaxBytes: 640_000, Pmax: q24(0.2)}, // HPCC, at 40 Gbit/s
		{KminBytes: 30_000, KmaxBytes: 30_000, Pmax: q24One},     // DCTCP
		{KminBytes: 0, KmaxBytes: 0, Pmax: q24One},               // whatever waits
		{KminBytes: 1000, KmaxBytes: 1001, Pmax: 1},              // the smallest probability
		{KminBytes: 5000, KmaxBytes: 200_000, Pmax: 0},           // never
		{KminBytes: 0, KmaxBytes: 1<<40 - 1, Pmax: q24One},       // the largest queue
		{KminBytes: 50_000, KmaxBytes: 200_000, Pmax: q24(0.2), AllAtKmax: 1},
		{KminBytes: 30_000, KmaxBytes: 30_000, Pmax: q24One, AllAtKmax: 1},
		{KminBytes: 1<<40 - 2, KmaxBytes: 1<<40 - 1, Pmax: q24(0.3)}, // at the end of it
	}
	r := rand.New(rand.NewPCG(1, 50))
	for range 20 {
		kmin := logUniform(r, 1, 1<<40-1)
		sets = append(sets, markRedParams{
			KminBytes: kmin,
			KmaxBytes: logUniform(r, kmin, 1<<40-1),
			Pmax:      uint32(logUniform(r, 1, q24One)),
		})
	}
	for _, p := range sets {
		t.Run(fmt.Sprintf("%d to %d, Pmax %g", p.KminBytes, p.KmaxBytes, q24Float(p.Pmax)), func(t *testing.T) {
			queues := redQueues(r, p)
			for i, n := range countMarks(t, m, p, queues) {
				share := new(big.Rat).Mul(redShare(p, queues[i]), big.NewRat(q24One, 1))
				want := new(big.Int).Div(share.Num(), share.Denom())
				qt.Assert(t, qt.Equals(n, want.Uint64()<<8), qt.Commentf("values that mark at %d bytes", queues[i]))
			}
		})
	}
}

// redQueues are all the boundaries, and some queues in between.
func redQueues(r *rand.Rand, p markRedParams) []uint64 {
	seen := map[uint64]bool{}
	var queues []uint64
	add := func(queueBytes uint64) {
		if !seen[queueBytes] {
			seen[queueBytes] = true
			queues = append(queues, queueBytes)
		}
	}
	for _, k := range []uint64{p.KminBytes, p.KmaxBytes} {
		add(max(k, 1) - 1)
		add(k)
		add(k + 1)
	}
	add(0)
	add(math.MaxInt64)
	for range 20 {
		add(p.KminBytes + uint64(r.Float64()*float64(p.KmaxBytes-p.KminBytes)))
	}
	return queues
}

func TestREDBoundaries(t *testing.T) {
	m := loadMarkers(t)

	const never, always = 0, 1 << 32
	dcqcn := markRedParams{KminBytes: 5000, KmaxBytes: 200_000, Pmax: q24(0.01)}
	dctcp := markRedParams{KminBytes: 30_000, KmaxBytes: 30_000, Pmax: q24One}
	whole := markRedParams{KminBytes: 5000, KmaxBytes: 200_000, Pmax: q24One}
	ldcp := markRedParams{KminBytes: 20_000, KmaxBytes: 80_000, Pmax: q24(0.5), AllAtKmax: 1}
	ldcpStep := markRedParams{KminBytes: 30_000, KmaxBytes: 30_000, Pmax: q24One, AllAtKmax: 1}
	off := markRedParams{KminBytes: 5000, KmaxBytes: 200_000}
	for _, test := range []struct {
		name       string
		params     markRedParams
		queueBytes uint64
		want       uint64
	}{
		{"empty", dcqcn, 0, never},
		{"K_min", dcqcn, 5000, never},
		{"half way", dcqcn, 102_500, uint64(q24(0.01)) / 2 << 8},
		{"K_max: P_max", dcqcn, 200_000, uint64(q24(0.01)) << 8},
		{"over K_max: 1", dcqcn, 200_001, always},
		{"step: at K", dctcp, 30_000, never},
		{"step: over K", dctcp, 30_001, always},
		{"LDCP: K_min", ldcp, 20_000, never},
		{"LDCP: half way", ldcp, 50_000, always / 4},
		{"LDCP: K_max", ldcp, 80_000, always},
		{"LDCP's step: below K", ldcpStep, 29_999, never},
		{"LDCP's step: at K", ldcpStep, 30_000, always},
		{"P_max 1: half way", whole, 102_500, always / 2},
		{"P_max 1: K_max", whole, 200_000, always},
		{"P_max 0: K_max", off, 200_000, never},
		{"P_max 0: over K_max", off, 1e9, never},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := countMarks(t, m, test.params, []uint64{test.queueBytes})
			qt.Assert(t, qt.Equals(got[0], test.want))
		})
	}
}
