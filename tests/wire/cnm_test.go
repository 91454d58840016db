// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/cnp"
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

func load(t *testing.T) *cnmObjects {
	t.Helper()
	var o cnmObjects
	err := loadCnmObjects(&o, nil)
	qt.Assert(t, qt.IsNil(err), qt.Commentf("load cnm.h, which takes root or CAP_BPF and CAP_PERFMON"))
	t.Cleanup(func() { _ = o.Close() })
	return &o
}

// run runs a program on its arguments and returns what it returned.
func run(t *testing.T, p *ebpf.Program, args any) uint32 {
	t.Helper()
	r, err := p.Run(&ebpf.RunOptions{Context: args})
	qt.Assert(t, qt.IsNil(err))
	return r
}

// event is what cnm_build is told.
type event struct {
	args    cnmBuildArgs
	sampled [78]byte
}

// build returns the frame that cnm.h builds, after it checked that the rest of struct cnm_frame is zero.
func build(t *testing.T, o *cnmObjects, e event) []byte {
	t.Helper()
	var frame [cnp.MaxCNMLen]byte
	for i := range frame {
		frame[i] = 0xa5 // what was there before
	}
	qt.Assert(t, qt.IsNil(o.Frame.Set(frame)))
	qt.Assert(t, qt.IsNil(o.Sampled.Set(e.sampled)))
	n := run(t, o.Build, &e.args)
	qt.Assert(t, qt.IsTrue(n <= cnp.MaxCNMLen), qt.Commentf("%d bytes", n))
	qt.Assert(t, qt.IsNil(o.Frame.Get(&frame)))
	qt.Assert(t, qt.DeepEquals(frame[n:], make([]byte, cnp.MaxCNMLen-n)))
	return frame[:n]
}

// encode returns the frame that package cnp writes instead.
func encode(t *testing.T, e event) []byte {
	t.Helper()
	c, err := cnp.NewCNM(e.sampled[:min(14+int(e.args.MsduLen), len(e.sampled))])
	qt.Assert(t, qt.IsNil(err))
	c.QntzFb = min(e.args.QntzFb, cnp.MaxQntzFb)
	c.CPID = e.args.Cpid
	c.CnmQOffset = cnp.CNMQueueUnits(e.args.QoffBytes)
	c.CnmQDelta = cnp.CNMQueueUnits(e.args.QdeltaBytes)
	c.EncapsulatedPriority = e.args.Priority
	frame, err := c.MarshalBinary()
	qt.Assert(t, qt.IsNil(err))
	return frame
}

func randomEvent(r *rand.Rand) event {
	e := event{args: cnmBuildArgs{
		Cpid:        r.Uint64(),
		QoffBytes:   int64(r.Uint64()) >> r.IntN(64),
		QdeltaBytes: int64(r.Uint64()) >> r.IntN(64),
		MsduLen:     uint16(r.IntN(80)),
		QntzFb:      uint8(r.IntN(70)),
		Priority:    uint8(r.IntN(8)),
	}}
	for i := range e.sampled {
		e.sampled[i] = byte(r.Uint32())
	}
	binary.BigEndian.PutUint16(e.sampled[12:], 0x0800)
	return e
}

func TestCNMBuild(t *testing.T) {
	o := load(t)
	check := func(e event) {
		t.Helper()
		qt.Assert(t, qt.DeepEquals(build(t, o, e), encode(t, e)), qt.Commentf("%+v", e))
	}
	r := rand.New(rand.NewPCG(7, 7))
	const unit = cnp.CNMQueueUnit
	for _, bytes := range []int64{
		0, 1, -1, unit - 1, unit, -unit, -unit - 1, 26000, math.MaxInt64, math.MinInt64,
		math.MaxInt16*unit + unit - 1, math.MaxInt16*unit + unit, math.MinInt16 * unit, math.MinInt16*unit - 1,
	} {
		e := randomEvent(r)
		e.args.QoffBytes, e.args.QdeltaBytes = bytes, -bytes
		check(e)
	}
	for _, msduLen := range []uint16{0, 1, 21, 22, 23, 63, 64, 65, 1500, math.MaxUint16} {
		e := randomEvent(r)
		e.args.MsduLen = msduLen
		check(e)
	}
	for range 5000 {
		check(randomEvent(r))
	}
}

// wellFormed asks cnm.h about a frame.
func wellFormed(t *testing.T, o *cnmObjects, frame []byte) bool {
	t.Helper()
	var buf [cnp.MaxCNMLen]byte
	copy(buf[:], frame)
	qt.Assert(t, qt.IsNil(o.Frame.Set(buf)))
	return run(t, o.WellFormed, &cnmCheckArgs{Len: uint32(len(frame))}) != 0
}

// cnm.h and package cnp accept the same frames, but for the padding, which cnm.h leaves unread.
func TestCNMWellFormed(t *testing.T) {
	o := load(t)
	r := rand.New(rand.NewPCG(3, 3))
	accepted := 0
	for range 20000 {
		frame := encode(t, randomEvent(r))
		for range r.IntN(3) { // the bits that may be wrong are in the first 38 bytes
			bit := 8*12 + r.IntN(8*(38-12))
			frame[bit/8] ^= 1 << (bit % 8)
		}
		switch r.IntN(4) {
		case 0:
			frame = frame[:38+r.IntN(len(frame)-37)]
		case 1:
			frame = append(frame, make([]byte, r.IntN(5))...)
		}
		if n := 38 + int(binary.BigEndian.Uint16(frame[36:])); n < len(frame) {
			clear(frame[n:])
		}
		_, err := cnp.ParseCNM(frame)
		ok := wellFormed(t, o, frame)
		qt.Assert(t, qt.Equals(ok, err == nil), qt.Commentf("%x: %v", frame, err))
		qt.Assert(t, qt.IsTrue(err == nil || errors.Is(err, cnp.ErrNotCNM) || errors.Is(err, cnp.ErrMalformed)))
		if ok {
			accepted++
		}
	}
	qt.Assert(t, qt.IsTrue(accepted > 4000 && accepted < 16000), qt.Commentf("%d of 20000 accepted", accepted))
}
