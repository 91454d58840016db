// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
)

// bictcp is the state of CUBIC or of BIC, which have the same name: a struct of 32-bit fields.
func bictcp(fields ...string) *btf.Struct {
	u32 := &btf.Int{Name: "unsigned int", Size: 4}
	s := &btf.Struct{Name: "bictcp"}
	for i, name := range fields {
		s.Members = append(s.Members,
			btf.Member{Name: name, Type: u32, Offset: btf.Bits(32 * i)})
	}
	s.Size = uint32(4 * len(fields))
	return s
}

// A kernel may have both CUBIC and BIC built in: the state that fits is CUBIC's.
func TestCubicIsToldFromBIC(t *testing.T) {
	// net/ipv4/tcp_cubic.c and net/ipv4/tcp_bic.c of Linux 6.18, in the order of their first fields
	cubic := bictcp("cnt", "last_max_cwnd", "last_cwnd", "last_time", "bic_origin_point", "bic_K",
		"delay_min", "epoch_start", "ack_cnt", "tcp_cwnd", "sample_cnt", "round_start", "end_seq",
		"last_ack", "curr_rtt")
	bic := bictcp("cnt", "last_max_cwnd", "last_cwnd", "last_time", "epoch_start", "ack_cnt",
		"delayed_ack")
	checked := 0
	for what, built := range map[string][]btf.Type{
		"CUBIC": {cubic}, "CUBIC, BIC": {cubic, bic}, "BIC, CUBIC": {bic, cubic},
	} {
		b, err := btf.NewBuilder(built, nil)
		qt.Assert(t, qt.IsNil(err))
		raw, err := b.Marshal(nil, nil)
		qt.Assert(t, qt.IsNil(err))
		kernel, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
		qt.Assert(t, qt.IsNil(err))
		for _, s := range scheme.Builtin().OnLinux() {
			found := ofType(t, s, "bictcp")
			var relocations []*btf.CORERelocation
			for _, at := range found {
				relocations = append(relocations, btf.CORERelocationMetadata(at))
			}
			fixups, err := btf.CORERelocate(relocations, []*btf.Spec{kernel}, binary.LittleEndian,
				func(btf.Type) (btf.TypeID, error) { return 1, nil })
			qt.Assert(t, qt.IsNil(err), qt.Commentf("%s on a kernel with %s", s.Name, what))
			for i, at := range found {
				qt.Assert(t, qt.IsNil(fixups[i].Apply(at)))
				isThere, isItsSize := at.Constant == 1, at.Constant == int64(cubic.Size)
				qt.Check(t, qt.IsTrue(isThere || isItsSize), qt.Commentf("%v", at))
			}
			checked += len(found)
		}
	}
	qt.Check(t, qt.IsTrue(checked > 0))
}

// ofType returns the instructions of a control's object that follow a type of the kernel.
func ofType(t *testing.T, s scheme.Scheme, name string) (found []*asm.Instruction) {
	t.Helper()
	spec, err := s.Object.Spec()
	qt.Assert(t, qt.IsNil(err))
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			at := &p.Instructions[i]
			r := btf.CORERelocationMetadata(at)
			if r != nil && strings.Contains(r.String(), fmt.Sprintf("%q", name)) {
				found = append(found, at)
			}
		}
	}
	return found
}
