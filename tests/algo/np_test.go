// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

const (
	paperTNs      = 50_000 // T of sec. 7
	paperPermille = 950

	startNs = 1 << 40 // any time but 0
)

// npOracle is Fig. 8 on the list of packets that arrived, in rationals.
type npOracle struct {
	params   algoPcnNpParams
	arrivals []algoNpStep // all so far, in the order they came; NowNs never falls
	window   int          // the first of the open window; len(arrivals) if none is open
}

// packet returns the CNP that the packet brings about.
func (o *npOracle) packet(s algoNpStep) algoPcnNpCnp {
	if n := len(o.arrivals); n > 0 {
		s.NowNs = max(s.NowNs, o.arrivals[n-1].NowNs)
	}
	cnp := o.timeout(s.NowNs)
	o.arrivals = append(o.arrivals, s)
	return cnp
}

// timeout closes the open window if its timer has run for T by now.
func (o *npOracle) timeout(nowNs uint64) algoPcnNpCnp {
	packets := o.arrivals[o.window:]
	if len(packets) == 0 || nowNs-packets[0].NowNs < o.params.T_ns {
		return algoPcnNpCnp{}
	}
	o.window = len(o.arrivals)

	marked, sizeBytes := 0, uint64(0)
	for _, p := range packets {
		sizeBytes += uint64(p.SizeBytes)
		if p.Ce {
			marked++
		}
	}
	ratio := big.NewRat(int64(marked), int64(len(packets)))
	if ratio.Cmp(big.NewRat(int64(o.params.CongestedPermille), 1000)) <= 0 {
		return algoPcnNpCnp{Send: true}
	}

	timerNs := min(nowNs-packets[0].NowNs, o.params.T_ns+longestGapNs(packets))
	latestTwo := o.arrivals[max(len(o.arrivals)-2, 0):]
	if o.params.PauseIsSilence != 0 && len(packets) == 1 && longestGapNs(latestTwo) > 0 {
		unit := big.NewRat(int64(max(o.params.RateUnitBps, 1)), 1e6)
		if o.params.RateUnitBps == 0 {
			unit = big.NewRat(1, 1)
		}
		if rateMbps(sizeBytes, longestGapNs(latestTwo)).Cmp(unit) < 0 {
			return algoPcnNpCnp{}
		}
	}
	if interArrivalNs := longestGapNs(latestTwo); len(packets) == 1 && interArrivalNs > 0 {
		timerNs = interArrivalNs
	}
	rate := rateMbps(sizeBytes, timerNs)
	if o.params.RateUnitBps != 0 {
		rate.Mul(rate, big.NewRat(1e6, int64(o.params.RateUnitBps)))
	}
	return algoPcnNpCnp{Send: true, Ce: true, RecRate: roundRate(rate)}
}

// longestGapNs is the longest time between two packets in a row, 0 if there is only one.
func longestGapNs(packets []algoNpStep) uint64 {
	longest := uint64(0)
	for i := 1; i < len(packets); i++ {
		longest = max(longest, packets[i].NowNs-packets[i-1].NowNs)
	}
	return longest
}

func rateMbps(bytes, ns uint64) *big.Rat {
	bits := new(big.Int).Mul(new(big.Int).SetUint64(bytes), big.NewInt(8))
	return new(big.Rat).SetFrac(bits.Mul(bits, big.NewInt(1000)), new(big.Int).SetUint64(ns))
}

// roundRate rounds to what RecRate can say: the nearest integer, halves up, from 1 to 2^32-1.
func roundRate(rate *big.Rat) uint32 {
	half := new(big.Rat).Add(rate, big.NewRat(1, 2))
	n := new(big.Int).Div(half.Num(), half.Denom())
	if n.Sign() == 0 {
		return 1
	}
	if n.Cmp(big.NewInt(math.MaxUint32)) > 0 {
		return math.MaxUint32
	}
	return uint32(n.Uint64())
}

// runNP runs the packets of one new flow.
func runNP(t testing.TB, b *bytecode, p algoPcnNpParams, packets []algoNpStep) {
	t.Helper()
	qt.Assert(t, qt.IsNil(b.objs.NpFlows.Put(uint32(0), algoPcnNp{})))
	b.np(t, p, packets)
}

// checkNP runs the packets of one new flow and compares every CNP with the oracle's.
func checkNP(t testing.TB, b *bytecode, p algoPcnNpParams, packets []algoNpStep) (cnps []algoPcnNpCnp) {
	t.Helper()

	runNP(t, b, p, packets)
	o := npOracle{params: p}
	for i, s := range packets {
		want := o.packet(s)
		if s.Cnp != want {
			t.Fatalf("packet %d: got %+v, want %+v; %+v, params %+v", i, s.Cnp, want, s, p)
		}
		if s.Cnp.Send {
			cnps = append(cnps, s.Cnp)
		}
	}
	return cnps
}

// packetsAt makes marked packets of 1000 bytes that arrive at these times.
func packetsAt(timesUs ...float64) []algoNpStep {
	packets := make([]algoNpStep, len(timesUs))
	for i, us := range timesUs {
		packets[i] = algoNpStep{NowNs: startNs + uint64(us*1000), SizeBytes: 1000, Ce: true}
	}
	return packets
}

// every returns n times from startUs on, stepUs apart.
func every(startUs, stepUs float64, n int) []float64 {
	times := make([]float64, n)
	for i := range times {
		times[i] = startUs + float64(i)*stepUs
	}
	return times
}

func TestNPWindows(t *testing.T) {
	b := load(t)

	ce := func(mbps uint32) algoPcnNpCnp { return algoPcnNpCnp{Send: true, Ce: true, RecRate: mbps} }
	for _, test := range []struct {
		name    string
		timesUs []float64
		want    []algoPcnNpCnp
	}{
		{"no packet after T, no CNP", []float64{0, 10, 49.999}, nil},
		{"a packet at T closes the window and is not part of it", []float64{0, 10, 50}, []algoPcnNpCnp{ce(320)}},
		{"two packets over 60 us", []float64{0, 30, 60}, []algoPcnNpCnp{ce(267)}},
		{"many packets over T", every(0, 0.5, 101), []algoPcnNpCnp{ce(16000)}},
		// Nothing came before: T is the best there is.
		{"the very first packet alone", []float64{0, 80}, []algoPcnNpCnp{ce(160)}},
		{"one packet in T: size over inter-arrival time", []float64{0, 80, 160, 240}, []algoPcnNpCnp{ce(160), ce(100), ce(100)}},
		{"the window's only packet, 30 us after the one before", []float64{0, 30, 60, 120}, []algoPcnNpCnp{ce(267), ce(267)}},
		// 10 packets in 10 us, then paused: T + 1 us, not 1 ms.
		{"silent within the window", append(every(0, 1, 10), 1000), []algoPcnNpCnp{ce(1569)}},
		// Bursts of 3, 30 us apart: 6 packets over 60 us.
		{"bursts", []float64{0, 0, 0, 30, 30, 30, 60, 60}, []algoPcnNpCnp{ce(800)}},
		{"one burst", []float64{0, 0, 0, 80}, []algoPcnNpCnp{ce(480)}},
		{"gaps of the window before don't count", []float64{0, 40, 60, 61, 62, 1000}, []algoPcnNpCnp{ce(267), ce(471)}},
		{"starts afresh after silence", []float64{0, 1000, 1010, 1020, 1050}, []algoPcnNpCnp{ce(160), ce(480)}},
		{"silent for seconds", []float64{0, 25, 9e6}, []algoPcnNpCnp{ce(213)}},
		// 30 counts as 40: 3 packets over 55 us.
		{"clock goes back in the window", []float64{0, 40, 30, 55}, []algoPcnNpCnp{ce(436)}},
		{"clock goes back before the window", []float64{0, -1000, -5, 49, 50}, []algoPcnNpCnp{ce(640)}},
		{"one packet, at the time of the one before", []float64{0, 30, 60, 10, 110}, []algoPcnNpCnp{ce(267), ce(320)}},
		{"slower than 1 Mbit/s", []float64{0, 20000, 40000}, []algoPcnNpCnp{ce(160), ce(1)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := algoPcnNpParams{T_ns: paperTNs, CongestedPermille: paperPermille}
			qt.Assert(t, qt.DeepEquals(checkNP(t, b, p, packetsAt(test.timesUs...)), test.want))
		})
	}
}

func TestNPMarkedShare(t *testing.T) {
	b := load(t)

	for _, test := range []struct {
		marked, packets int
		permille        uint32
		want            bool // congested
	}{
		{0, 1, 950, false},
		{1, 1, 950, true},
		{1, 2, 950, false},
		{2, 2, 950, true},
		{18, 20, 950, false},
		{19, 20, 950, false}, // 95% exactly
		{20, 20, 950, true},
		{94, 100, 950, false},
		{95, 100, 950, false},
		{96, 100, 950, true},
		{949, 999, 950, false},
		{950, 999, 950, true},
		{1900, 2000, 950, false},
		{1901, 2000, 950, true},
		{0, 100, 0, false},
		{1, 100, 0, true},
		{100, 100, 1000, false},
	} {
		t.Run(fmt.Sprintf("%d of %d over %d", test.marked, test.packets, test.permille), func(t *testing.T) {
			p := algoPcnNpParams{T_ns: paperTNs, CongestedPermille: test.permille}
			packets := packetsAt(every(0, 50/float64(test.packets), test.packets+1)...)
			packets[test.packets].NowNs = startNs + paperTNs
			for i := range packets {
				packets[i].Ce = i < test.marked
			}
			cnps := checkNP(t, b, p, packets)
			qt.Assert(t, qt.HasLen(cnps, 1))
			qt.Assert(t, qt.Equals(cnps[0].Ce, test.want))
			qt.Assert(t, qt.Equals(cnps[0].RecRate > 0, test.want), qt.Commentf("RecRate 0 unless congested"))
		})
	}
}

// The unmarked packet that closes a window counts for the next one.
func TestNPCountsAfresh(t *testing.T) {
	b := load(t)

	packets := packetsAt(0, 20, 40, 60, 80, 100, 120, 140, 160, 180)
	for i := range packets {
		packets[i].Ce = i < 3 || i >= 6
	}
	got := checkNP(t, b, algoPcnNpParams{T_ns: paperTNs, CongestedPermille: paperPermille}, packets)
	qt.Assert(t, qt.DeepEquals(got, []algoPcnNpCnp{
		{Send: true, Ce: true, RecRate: 400},
		{Send: true},
		{Send: true, Ce: true, RecRate: 400},
	}))
}

// Nothing overflows at the largest packets, rates and periods.
func TestNPExtremes(t *testing.T) {
	b := load(t)

	const second = uint64(1e9)
	for _, test := range []struct {
		name      string
		tNs       uint64
		sizeBytes uint32
		stepNs    uint64
		packets   int
		unitBps   uint32
		want      uint32
	}{
		{"64 KB every ns", 1000, 65535, 1, 1001, 0, 524_280_000},
		{"more than RecRate can say", 1000, math.MaxUint32, 1, 1001, 0, math.MaxUint32},
		{"a second full of 4 GB packets", second, math.MaxUint32, second / 60_000, 60_001, 0, 2_061_584_302},
		{"no byte at all", 1000, 0, 100, 11, 0, 1},
		{"in kbit/s", 500_000, 1000, 100_000, 6, 1000, 80_000},
		{"a thousandth of 10 Gbit/s, in kbit/s", 1_640_000, 1000, 820_000, 3, 1000, 9756},
		{"a second full of 32 MB packets, in kbit/s", second, 32 << 20, second / 60_000, 60_001, 1000, math.MaxUint32},
	} {
		t.Run(test.name, func(t *testing.T) {
			packets := make([]algoNpStep, test.packets)
			for i := range packets {
				packets[i] = algoNpStep{NowNs: startNs + uint64(i)*test.stepNs, SizeBytes: test.sizeBytes, Ce: true}
			}
			packets[test.packets-1].NowNs = startNs + test.tNs
			p := algoPcnNpParams{T_ns: test.tNs, CongestedPermille: paperPermille, RateUnitBps: test.unitBps}
			cnps := checkNP(t, b, p, packets)
			qt.Assert(t, qt.DeepEquals(cnps, []algoPcnNpCnp{{Send: true, Ce: true, RecRate: test.want}}))
		})
	}
}

// A window of more packets than any link brings in a second.
func TestNPCountsBillions(t *testing.T) {
	b := load(t)

	for _, test := range []struct {
		marked uint32
		want   bool
	}{
		{3_799_999_999, false},
		{3_800_000_001, true}, // over 95% of 4 billion
	} {
		window := algoPcnNp{StartNs: startNs, LastNs: startNs + 1, RecDataBytes: 64 * 4e9, RecNum: 4e9, EcnNum: test.marked}
		qt.Assert(t, qt.IsNil(b.objs.NpFlows.Put(uint32(0), window)))
		packets := []algoNpStep{{NowNs: startNs + 1e9}}
		b.np(t, algoPcnNpParams{T_ns: 1e9, CongestedPermille: paperPermille}, packets)
		qt.Check(t, qt.IsTrue(packets[0].Cnp.Send))
		qt.Check(t, qt.Equals(packets[0].Cnp.Ce, test.want))
	}
}

// Evenly spaced packets are measured exactly, whatever their rate.
func TestNPEvenlySpaced(t *testing.T) {
	b := load(t)

	for _, sizeBytes := range []uint32{64, 1000, 9000, 65535} {
		for _, tNs := range []uint64{10_000, paperTNs, 1_000_000, 1_000_000_000} {
			// Packets per T, in quarters.
			for quarters := uint64(4); quarters <= 4000; quarters += 1 + quarters/16 {
				perT := float64(quarters) / 4
				packets := make([]algoNpStep, 5*(quarters/4+1)+1)
				for i := range packets {
					packets[i] = algoNpStep{NowNs: startNs + uint64(i)*4*tNs/quarters, SizeBytes: sizeBytes, Ce: true}
				}
				cnps := measure(t, b, tNs, packets)
				qt.Assert(t, qt.IsTrue(len(cnps) >= 4))

				// Arrivals are to the ns: an interval between two of them is 1 ns off at most, T + a gap too.
				trueMbps := float64(sizeBytes) * 8000 * perT / float64(tNs)
				tolerance := 0.5 + trueMbps*2/float64(tNs)
				for _, cnp := range cnps {
					near(t, float64(cnp.RecRate), max(trueMbps, 1), tolerance, "%d bytes, %g a T of %d ns", sizeBytes, perT, tNs)
				}
			}
		}
	}
}

// measure returns the CNPs that marked packets of one flow bring about.
func measure(t testing.TB, b *bytecode, tNs uint64, packets []algoNpStep) (cnps []algoPcnNpCnp) {
	t.Helper()

	runNP(t, b, algoPcnNpParams{T_ns: tNs, CongestedPermille: paperPermille}, packets)
	for _, s := range packets {
		if s.Cnp.Send {
			cnps = append(cnps, s.Cnp)
		}
	}
	return cnps
}

// On average over windows, the receiving rate must be off by much less than the discount w_min, or the queue does
// not drain. Two plainer readings of Timer fail that: at T, and at the closing packet but no later than the latest
// inter-arrival time after T.
func TestNPUnbiased(t *testing.T) {
	b := load(t)

	const wMin = 1. / 128
	r := rand.New(rand.NewPCG(1, 2))
	for _, test := range []struct {
		name        string
		packetsPerT []float64
		gap         func(i int) float64 // mean 1
		latestFails bool                // a limit of the latest inter-arrival time would not do
	}{
		{"even", []float64{2.5, 8.5, 32.5, 62.5}, func(int) float64 { return 1 }, false},
		{"20% jitter", []float64{4.5, 8.5, 32.5, 62.5}, func(int) float64 { return 0.8 + 0.4*r.Float64() }, false},
		{"uniform", []float64{8.5, 16.5}, func(int) float64 { return 2 * r.Float64() }, true},
		{"exponential", []float64{32.5, 48.5}, func(int) float64 { return r.ExpFloat64() }, true},
		{"bursts of 4", []float64{8.5, 32.5, 62.5}, func(i int) float64 { return 4 * float64((i%4+1)/4) }, true},
		{"bursts of 16", []float64{32.5, 62.5}, func(i int) float64 { return 16 * float64((i%16+1)/16) }, true},
	} {
		for _, perT := range test.packetsPerT {
			t.Run(fmt.Sprintf("%s, %g a T", test.name, perT), func(t *testing.T) {
				packets := make([]algoNpStep, 60_000)
				at := 0.0
				for i := range packets {
					packets[i] = algoNpStep{NowNs: startNs + uint64(at), SizeBytes: 1000, Ce: true}
					at += test.gap(i) * paperTNs / perT
				}
				cnps := measure(t, b, paperTNs, packets)
				sumMbps := 0.0
				for _, cnp := range cnps {
					sumMbps += float64(cnp.RecRate)
				}
				trueMbps := 1000 * 8000 * float64(len(packets)) / at
				bias := func(mbps float64) float64 { return math.Abs(mbps/trueMbps - 1) }

				qt.Check(t, qt.IsTrue(bias(sumMbps/float64(len(cnps))) < wMin/2), qt.Commentf("mean RecRate %g of %g Mbit/s", sumMbps/float64(len(cnps)), trueMbps))
				qt.Check(t, qt.IsTrue(bias(meanMbps(packets, func(_, _ uint64) uint64 { return 0 })) > wMin), qt.Commentf("Timer read at T"))
				latest := meanMbps(packets, func(closingNs, latestNs uint64) uint64 { return min(closingNs, latestNs) })
				qt.Check(t, qt.Equals(bias(latest) > wMin, test.latestFails), qt.Commentf("Timer read within the latest inter-arrival time"))
			})
		}
	}
}

// meanMbps is the mean receiving rate, were Timer read afterNs past T: a function of how long after T the closing
// packet comes, and of the latest inter-arrival time before it.
func meanMbps(packets []algoNpStep, afterNs func(closingNs, latestNs uint64) uint64) float64 {
	sum, windows := 0.0, 0.0
	first := 0
	for i, p := range packets {
		timerNs := p.NowNs - packets[first].NowNs
		if timerNs < paperTNs {
			continue
		}
		latestNs := uint64(0)
		if i >= 2 {
			latestNs = packets[i-1].NowNs - packets[i-2].NowNs
		}
		sum += float64(i-first) * 1000 * 8000 / float64(paperTNs+afterNs(timerNs-paperTNs, latestNs))
		windows++
		first = i
	}
	return sum / windows
}

func TestNPRandomPackets(t *testing.T) {
	b := load(t)

	const sequences, length = 400, 1000
	cnps := 0
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := algoPcnNpParams{
			T_ns:              logUniform(r, 1000, 1e9),
			CongestedPermille: pick[uint32](r, 0, 500, 900, 950, 950, 950, 999, 1000),
			PauseIsSilence:    pick[uint32](r, 0, 1),
			RateUnitBps:       pick[uint32](r, 0, 0, 1000, 8000, 100_000),
		}
		cnps += len(checkNP(t, b, p, randomPackets(r, p, length)))
	}
	qt.Assert(t, qt.IsTrue(cnps > 10*sequences), qt.Commentf("only %d windows closed", cnps))
}

// randomPackets makes a flow that is steady, bursty, silent now and then, or on a clock that jumps.
func randomPackets(r *rand.Rand, p algoPcnNpParams, n int) []algoNpStep {
	packets := make([]algoNpStep, n)
	nowNs := uint64(startNs)
	stepNs := logUniform(r, 1+p.T_ns/200, 3*p.T_ns)
	sizeBytes := pick[uint64](r, 64, 1000, 1500, 9000, 65535)
	ceShare := pick(r, 0.5, 0.94, 0.96, 0.99, 1)
	for i := range packets {
		switch r.IntN(20) {
		case 0: // silence
			nowNs += logUniform(r, 1+p.T_ns/10, 1000*p.T_ns)
		case 1: // back
			nowNs -= r.Uint64N(2 * p.T_ns)
		case 2: // at the same time
		case 3, 4, 5, 6: // jitter
			nowNs += r.Uint64N(2*stepNs + 1)
		default:
			nowNs += stepNs
		}
		packets[i] = algoNpStep{
			NowNs:     nowNs,
			SizeBytes: uint32(pick(r, sizeBytes, sizeBytes, logUniform(r, 1, 65535))),
			Ce:        r.Float64() < ceShare,
		}
	}
	return packets
}

// periodicOracle is Fig. 8 as its text reads: the k-th window of a flow lasts from its first
// packet's arrival + kT to + (k+1)T, and a window with packets sends a CNP when it ends.
type periodicOracle struct {
	params   algoPcnNpParams
	arrivals []algoNpStep // all packets so far; NowNs never falls
	window   []algoNpStep // of which are in the present window
	k        uint64
}

// reach closes the present window if time has come to a later one.
func (o *periodicOracle) reach(nowNs uint64) (cnp algoPcnNpCnp) {
	if len(o.arrivals) == 0 || nowNs < o.arrivals[0].NowNs {
		return cnp
	}
	k := (nowNs - o.arrivals[0].NowNs) / o.params.T_ns
	if k <= o.k {
		return cnp
	}
	o.k = k
	if len(o.window) > 0 {
		cnp = o.verdict()
	}
	o.window = nil
	return cnp
}

// verdict is the lower half of Fig. 8.
func (o *periodicOracle) verdict() algoPcnNpCnp {
	marked, bytes := 0, uint64(0)
	for _, p := range o.window {
		bytes += uint64(p.SizeBytes)
		if p.Ce {
			marked++
		}
	}
	share := big.NewRat(int64(marked), int64(len(o.window)))
	if share.Cmp(big.NewRat(int64(o.params.CongestedPermille), 1000)) <= 0 {
		return algoPcnNpCnp{Send: true}
	}
	ns := o.params.T_ns
	if n := len(o.arrivals); len(o.window) == 1 && n > 1 {
		if gap := o.arrivals[n-1].NowNs - o.arrivals[n-2].NowNs; gap > 0 {
			ns = gap
		}
	}
	return algoPcnNpCnp{Send: true, Ce: true, RecRate: roundRate(rateMbps(bytes, ns))}
}

func (o *periodicOracle) packet(s algoNpStep) algoPcnNpCnp {
	if n := len(o.arrivals); n > 0 {
		s.NowNs = max(s.NowNs, o.arrivals[n-1].NowNs)
	}
	cnp := o.reach(s.NowNs)
	o.arrivals = append(o.arrivals, s)
	o.window = append(o.window, s)
	return cnp
}

// Windows that follow each other, with a timer that fires at some of their ends, at no special
// time, or never.
func TestNPPeriodicWindows(t *testing.T) {
	b := load(t)

	cnps, silent := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := algoPcnNpParams{
			T_ns:              logUniform(r, 1000, 1e9),
			CongestedPermille: pick[uint32](r, 0, 500, 950, 950, 1000),
			Window:            algoPcnNpWindowPCN_WINDOW_PERIODIC,
		}
		steps := randomPackets(r, p, 1000)
		timers := pick(r, 0, 3, 10) // in 10 steps
		for i := range steps[1:] {
			if s := &steps[i+1]; r.IntN(10) < timers {
				end := startNs + (steps[i].NowNs-startNs+p.T_ns)/p.T_ns*p.T_ns
				*s = algoNpStep{NowNs: pick(r, end-1, end, end, s.NowNs), Timer: true}
			}
		}
		runNP(t, b, p, steps)
		o := periodicOracle{params: p}
		for i, s := range steps {
			want := algoPcnNpCnp{}
			if s.Timer {
				want = o.reach(s.NowNs)
			} else {
				want = o.packet(s)
			}
			if s.Cnp != want {
				t.Fatalf("seed %d, step %d: got %+v, want %+v; %+v, params %+v", seed, i, s.Cnp,
					want, s, p)
			}
			if s.Cnp.Send {
				cnps++
			} else if s.Timer {
				silent++
			}
		}
	}
	qt.Assert(t, qt.IsTrue(cnps > 4000 && silent > 400),
		qt.Commentf("%d CNPs, %d timers without", cnps, silent))
}

// recData / T has no bias, however few packets a window has. Windows that open with a packet count
// half a packet too much if they divide by T.
func TestNPPeriodicUnbiased(t *testing.T) {
	b := load(t)

	const wMin = 1. / 128
	for _, perT := range []float64{2.5, 8.5, 32.5, 62.5} {
		packets := make([]algoNpStep, 60_000)
		for i := range packets {
			packets[i] = algoNpStep{
				NowNs: startNs + uint64(float64(i)*paperTNs/perT), SizeBytes: 1000, Ce: true,
			}
		}
		runNP(t, b, algoPcnNpParams{
			T_ns: paperTNs, CongestedPermille: paperPermille,
			Window: algoPcnNpWindowPCN_WINDOW_PERIODIC,
		}, packets)
		sum, n := 0.0, 0.0
		for _, s := range packets {
			if s.Cnp.Send {
				sum += float64(s.Cnp.RecRate)
				n++
			}
		}
		trueMbps := 1000 * 8000 * perT / paperTNs
		near(t, sum/n, trueMbps, trueMbps*wMin/2, "%g packets a T", perT)
	}
}

func FuzzNP(f *testing.F) {
	b := load(f)

	// Every 10 us a marked packet; then a jump back, a long silence, and the largest sizes.
	steady := make([]byte, 0, 7*40)
	for range 40 {
		steady = append(steady, 0, 0, 0x27, 0x10, 0x03, 0xe8, 1)
	}
	f.Add(uint32(paperTNs), uint32(paperPermille), steady)
	f.Add(uint32(1000), uint32(paperPermille), []byte{0, 0, 0, 0, 0, 64, 1, 0xff, 0xff, 0xff, 0, 0, 64, 1, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 1, 0, 0, 0, 1})
	f.Add(uint32(1e9), uint32(0), []byte{0, 0, 0, 0, 0xff, 0xff, 1, 0x40, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0})
	f.Add(uint32(1000), uint32(1000), steady)
	f.Fuzz(func(t *testing.T, tNs, permille uint32, data []byte) {
		const us, second = 1000, 1_000_000_000
		p := algoPcnNpParams{
			T_ns:              us + uint64(tNs)%(second-us+1),
			CongestedPermille: permille % 1001,
		}
		checkNP(t, b, p, decodePackets(data))
	})
}

// decodePackets reads packets of 7 bytes: ns since the one before, signed; size; whether it is marked.
func decodePackets(data []byte) []algoNpStep {
	const size, most = 7, 2000
	var packets []algoNpStep
	nowNs := int64(1) << 50
	for ; len(data) >= size && len(packets) < most; data = data[size:] {
		nowNs += int64(int32(binary.BigEndian.Uint32(data)))
		packets = append(packets, algoNpStep{
			NowNs:     uint64(nowNs),
			SizeBytes: uint32(binary.BigEndian.Uint16(data[4:])),
			Ce:        data[6]&1 == 1,
		})
	}
	return packets
}
