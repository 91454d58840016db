// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"

	"pcn/loader"
	"pcn/netns-lab/vm"
)

// TestMain runs the tests on this kernel if they may load programs, and in a microVM otherwise.
func TestMain(m *testing.M) {
	if vm.InGuest() || loader.HavePermission() != nil {
		os.Exit(vm.RunTests(m))
	}
	os.Exit(m.Run())
}

// bytecode is the algorithms in the kernel. Its flows keep their state from one batch to the next; queues and
// ingresses start afresh with each.
type bytecode struct {
	objs algoObjects
	keys []uint32 // 0, 1, 2, ... of the step maps
}

func load(t testing.TB) *bytecode {
	t.Helper()

	b := new(bytecode)
	err := loadAlgoObjects(&b.objs, nil)
	qt.Assert(t, qt.IsNil(err), qt.Commentf("load the algorithms, which takes root or CAP_BPF and CAP_PERFMON"))
	t.Cleanup(func() { _ = b.objs.Close() })

	b.keys = make([]uint32, b.objs.RpSteps.MaxEntries())
	for i := range b.keys {
		b.keys[i] = uint32(i)
	}
	return b
}

func (b *bytecode) rp(t testing.TB, params algoPcnRpParams, steps []algoRpStep) {
	t.Helper()
	args := algoRpArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, b, b.objs.Rp, b.objs.RpSteps, &args, steps)
}

func (b *bytecode) np(t testing.TB, params algoPcnNpParams, steps []algoNpStep) {
	t.Helper()
	args := algoNpArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, b, b.objs.Np, b.objs.NpSteps, &args, steps)
}

func (b *bytecode) cp(t testing.TB, steps []algoCpStep) {
	t.Helper()
	args := algoCpArgs{Steps: uint32(len(steps))}
	runBatch(t, b, b.objs.Cp, b.objs.CpSteps, &args, steps)
}

func (b *bytecode) pfc(t testing.TB, params algoPfcParams, steps []algoPfcStep) {
	t.Helper()
	args := algoPfcArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, b, b.objs.Pfc, b.objs.PfcSteps, &args, steps)
}

// runBatch runs a program over steps, which hold the outcomes afterwards.
func runBatch[Step any](t testing.TB, b *bytecode, prog *ebpf.Program, m *ebpf.Map, args any, steps []Step) {
	t.Helper()
	if len(steps) == 0 {
		return
	}
	qt.Assert(t, qt.IsTrue(len(steps) <= len(b.keys)), qt.Commentf("%d steps in one batch", len(steps)))

	keys := b.keys[:len(steps)]
	_, err := m.BatchUpdate(keys, steps, nil)
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
	qt.Assert(t, qt.IsTrue(math.Abs(got-want) <= tolerance),
		qt.Commentf("%s: got %g, want %g within %g", fmt.Sprintf(format, args...), got, want, tolerance))
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
