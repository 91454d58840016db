// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/internal/vm/vmtest"
	"github.com/pcn-linux/pcn/loader"
)

// TestMain runs the tests on this kernel if they may load programs, and in a microVM otherwise.
func TestMain(m *testing.M) {
	if guest.Inside() || loader.HavePermission() != nil {
		os.Exit(vmtest.RunTests(m, vmtest.Extra{}))
	}
	os.Exit(m.Run())
}

// bytecode is PCN's algorithms and PFC in the kernel. Its flows keep their state from one batch to the next; queues
// and ingresses start afresh with each.
type bytecode struct {
	objs algoObjects
}

func load(t testing.TB) *bytecode {
	t.Helper()

	b := new(bytecode)
	loadObjects(t, &b.objs, loadAlgoObjects)
	return b
}

var noPermission = qt.Commentf("load the algorithms, which takes root or CAP_BPF and CAP_PERFMON")

// loadObjects loads a test object for the time of the test.
func loadObjects(t testing.TB, objs io.Closer, load func(any, *ebpf.CollectionOptions) error) {
	t.Helper()
	err := load(objs, nil)
	qt.Assert(t, qt.IsNil(err), noPermission)
	t.Cleanup(func() { _ = objs.Close() })
}

func (b *bytecode) rp(t testing.TB, params algoPcnRpParams, steps []algoRpStep) {
	t.Helper()
	args := algoRpArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, b.objs.Rp, b.objs.RpSteps, &args, steps)
}

func (b *bytecode) np(t testing.TB, params algoPcnNpParams, steps []algoNpStep) {
	t.Helper()
	args := algoNpArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, b.objs.Np, b.objs.NpSteps, &args, steps)
}

func (b *bytecode) ack(t testing.TB, args algoAckArgs, steps []algoAckStep) {
	t.Helper()
	args.Steps = uint32(len(steps))
	runBatch(t, b.objs.Ack, b.objs.AckSteps, &args, steps)
}

func (b *bytecode) cp(t testing.TB, steps []algoCpStep) {
	t.Helper()
	args := algoCpArgs{Steps: uint32(len(steps))}
	runBatch(t, b.objs.Cp, b.objs.CpSteps, &args, steps)
}

func (b *bytecode) pfc(t testing.TB, params algoPfcParams, steps []algoPfcStep) {
	t.Helper()
	args := algoPfcArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, b.objs.Pfc, b.objs.PfcSteps, &args, steps)
}

// senders is what sets rates in the kernel: a flow of each kind, which keeps its state from one batch to the next.
type senders struct {
	objs rateObjects
}

// sendersOnce loads them for all tests: the verifier takes its time over recovery.h.
var sendersOnce = sync.OnceValues(func() (*senders, error) {
	s := new(senders)
	return s, loadRateObjects(&s.objs, nil)
})

func loadSenders(t testing.TB) *senders {
	t.Helper()
	s, err := sendersOnce()
	qt.Assert(t, qt.IsNil(err), noPermission)
	return s
}

func (s *senders) dcqcn(t testing.TB, params rateDcqcnParams, steps []rateDcqcnStep) {
	t.Helper()
	args := rateDcqcnArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, s.objs.Dcqcn, s.objs.DcqcnSteps, &args, steps)
}

func (s *senders) qcn(t testing.TB, params rateQcnRpParams, steps []rateQcnStep) {
	t.Helper()
	args := rateQcnArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, s.objs.Qcn, s.objs.QcnSteps, &args, steps)
}

func (s *senders) timely(t testing.TB, params rateTimelyParams, steps []rateTimelyStep) {
	t.Helper()
	args := rateTimelyArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, s.objs.Timely, s.objs.TimelySteps, &args, steps)
}

func (s *senders) ibcc(t testing.TB, params rateIbccParams, steps []rateIbccStep) {
	t.Helper()
	args := rateIbccArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, s.objs.Ibcc, s.objs.IbccSteps, &args, steps)
}

func (s *senders) dctcpRate(
	t testing.TB, params rateDctcpRateParams, steps []rateDctcpRateStep,
) {
	t.Helper()
	args := rateDctcpRateArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, s.objs.DctcpRate, s.objs.DctcpRateSteps, &args, steps)
}

func (s *senders) hpcc(t testing.TB, params rateHpccParams, steps []rateHpccStep) {
	t.Helper()
	args := rateHpccArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, s.objs.Hpcc, s.objs.HpccSteps, &args, steps)
}

func (s *senders) powertcp(t testing.TB, params ratePowertcpParams, steps []ratePowertcpStep) {
	t.Helper()
	args := ratePowertcpArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, s.objs.Powertcp, s.objs.PowertcpSteps, &args, steps)
}

func (s *senders) swift(t testing.TB, params rateSwiftParams, steps []rateSwiftStep) {
	t.Helper()
	args := rateSwiftArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, s.objs.Swift, s.objs.SwiftSteps, &args, steps)
}

func (s *senders) fixed(t testing.TB, random uint32, steps []rateFixedStep) {
	t.Helper()
	args := rateFixedArgs{Random: random, Steps: uint32(len(steps))}
	runBatch(t, s.objs.Fixed, s.objs.FixedSteps, &args, steps)
}

// markers is what tells of congestion in the kernel. Each starts with each batch.
type markers struct {
	objs markObjects
}

func loadMarkers(t testing.TB) *markers {
	t.Helper()

	m := new(markers)
	loadObjects(t, &m.objs, loadMarkObjects)
	return m
}

func (m *markers) red(t testing.TB, params markRedParams, steps []markRedStep) {
	t.Helper()
	args := markRedArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, m.objs.Red, m.objs.RedSteps, &args, steps)
}

func (m *markers) notify(t testing.TB, intervalNs uint64, steps []markNotifyStep) {
	t.Helper()
	args := markNotifyArgs{IntervalNs: intervalNs, Steps: uint32(len(steps))}
	runBatch(t, m.objs.Notify, m.objs.NotifySteps, &args, steps)
}

func (m *markers) sample(t testing.TB, params markQcnCpParams, seed uint32, steps []markSampleStep) {
	t.Helper()
	args := markSampleArgs{Params: params, Seed: seed, Steps: uint32(len(steps))}
	runBatch(t, m.objs.Sample, m.objs.SampleSteps, &args, steps)
}

func (m *markers) window(t testing.TB, params markDctcpParams, steps []markWindowStep) {
	t.Helper()
	args := markWindowArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, m.objs.Window, m.objs.WindowSteps, &args, steps)
}

// batchKeys are 0, 1, 2, ..., as many as the step maps have.
var batchKeys = func() []uint32 {
	keys := make([]uint32, 65536)
	for i := range keys {
		keys[i] = uint32(i)
	}
	return keys
}()

// runBatch runs a program over steps, which hold the outcomes afterwards.
func runBatch[Step any](t testing.TB, prog *ebpf.Program, m *ebpf.Map, args any, steps []Step) {
	t.Helper()
	if len(steps) == 0 {
		return
	}
	qt.Assert(t, qt.IsTrue(len(steps) <= len(batchKeys)), qt.Commentf("%d steps in one batch", len(steps)))

	_, err := m.BatchUpdate(batchKeys[:len(steps)], steps, nil)
	qt.Assert(t, qt.IsNil(err))

	done, err := prog.Run(&ebpf.RunOptions{Context: args})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(done, uint32(len(steps))))

	var cursor ebpf.MapBatchCursor
	n, err := m.BatchLookup(&cursor, make([]uint32, len(steps)), steps, nil)
	if !errors.Is(err, ebpf.ErrKeyNotExist) { // the end of the map
		qt.Assert(t, qt.IsNil(err))
	}
	qt.Assert(t, qt.Equals(n, len(steps)))
}

// near checks that got is want within tolerance.
func near(t testing.TB, got, want, tolerance float64, format string, args ...any) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Fatalf("%s: got %g, want %g within %g", fmt.Sprintf(format, args...), got, want, tolerance)
	}
}

// logUniform draws from low to high inclusive, every order of magnitude as likely as another. low > 0.
func logUniform(r *rand.Rand, low, high uint64) uint64 {
	x := math.Exp(math.Log(float64(low)) + r.Float64()*math.Log(float64(high)/float64(low)))
	return min(max(uint64(x), low), high)
}

// pick draws one of the choices.
func pick[T any](r *rand.Rand, choices ...T) T {
	return choices[r.IntN(len(choices))]
}
