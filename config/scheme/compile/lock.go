// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/pcn-linux/pcn/config/scheme"
)

// A control's functions run under their flow's lock, where kernels refuse each helper of BPF. The
// simulator has no locks, and would run them.

// lockWalk follows a program's instructions on all ways, with the lock and without it.
type lockWalk struct {
	program asm.Instructions
	offsets []asm.RawInstructionOffset       // of each instruction
	at      map[asm.RawInstructionOffset]int // their inverse
	starts  map[string]int                   // of functions
	lines   []*btf.Line                      // of each instruction
	seen    map[instruction]bool
}

// instruction is one by its index, and whether PCN's headers hold the lock before it.
type instruction struct {
	index  int
	locked bool
}

// checkLock refuses helpers that a control calls under a lock, and locks of its own there.
func checkLock(object *scheme.Object) error {
	spec, err := object.Spec()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		if err := walkLocks(spec.Programs[name].Instructions); err != nil {
			return err
		}
	}
	return nil
}

func walkLocks(program asm.Instructions) error {
	w := lockWalk{program: program, at: map[asm.RawInstructionOffset]int{},
		starts: map[string]int{}, seen: map[instruction]bool{}}
	var line *btf.Line
	for iter := program.Iterate(); iter.Next(); {
		w.at[iter.Offset] = iter.Index
		w.offsets = append(w.offsets, iter.Offset)
		if name := iter.Ins.Symbol(); name != "" {
			w.starts[name] = iter.Index
		}
		if l, ok := iter.Ins.Source().(*btf.Line); ok {
			line = l
		}
		w.lines = append(w.lines, line)
	}
	for todo := []instruction{{}}; len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if w.seen[i] {
			continue
		}
		w.seen[i] = true
		next, err := w.step(i)
		if err != nil {
			return err
		}
		todo = append(todo, slices.DeleteFunc(next, func(n instruction) bool {
			return n.index == i.index+1 && w.isStart(n.index) // C leaves undefined what happens
		})...)
	}
	return nil
}

// isStart reports whether a function begins at an index, or none has it.
func (w *lockWalk) isStart(index int) bool {
	return index >= len(w.program) || w.program[index].Symbol() != ""
}

// step returns the instructions that may come after one.
func (w *lockWalk) step(i instruction) ([]instruction, error) {
	ins := &w.program[i.index]
	next := instruction{i.index + 1, i.locked}
	helper, own := asm.BuiltinFunc(ins.Constant), isOwn(w.lines[i.index])
	switch {
	case ins.IsBuiltinCall() && (helper == asm.FnSpinLock || helper == asm.FnSpinUnlock):
		if own && i.locked {
			return nil, w.refuse(i.index, "a flow's lock is taken or given back twice, which "+
				"kernels refuse", "remove it: a control's functions run under the flow's lock")
		}
		next.locked = !own && helper == asm.FnSpinLock
	case ins.IsBuiltinCall() && i.locked:
		return nil, w.refuse(i.index, "a helper of BPF is called under the flow's lock, which "+
			"kernels refuse", scheme.LockHint)
	case ins.IsFunctionCall():
		return []instruction{next, {w.starts[ins.Reference()], i.locked}}, nil
	case ins.OpCode.JumpOp() == asm.Exit:
		return nil, nil
	case isJump(ins):
		target := instruction{w.target(i.index), i.locked}
		if ins.OpCode.JumpOp() == asm.Ja {
			return []instruction{target}, nil
		}
		return []instruction{next, target}, nil
	}
	return []instruction{next}, nil
}

// isJump reports whether an instruction goes elsewhere than to the next, and is no call.
func isJump(ins *asm.Instruction) bool {
	op := ins.OpCode.JumpOp()
	return ins.OpCode.Class().IsJump() && op != asm.Call && op != asm.Exit
}

// target returns the instruction that a jump leads to.
func (w *lockWalk) target(from int) int {
	by := asm.RawInstructionOffset(w.program[from].Offset)
	return w.at[w.offsets[from]+1+by]
}

// isOwn reports whether a line is of a user's file, not of a header of PCN's.
func isOwn(line *btf.Line) bool {
	return line != nil && !strings.HasPrefix(line.FileName(), "bpf/")
}

// refuse is an error at the user's line that an instruction is of.
func (w *lockWalk) refuse(index int, what, hint string) error {
	line := w.ownLine(index)
	if line == nil {
		return fmt.Errorf("error: %s\n(hint: %s)", what, hint)
	}
	return fmt.Errorf("%s:%d: error: %s\n(hint: %s)", filepath.Base(line.FileName()),
		line.LineNumber(), what, hint)
}

// ownLine returns the line of an instruction; for a header's, the user's line before it, or behind
// it. It is nil if there is none.
func (w *lockWalk) ownLine(index int) *btf.Line {
	for i := index; i >= 0; i-- {
		if isOwn(w.lines[i]) {
			return w.lines[i]
		}
		if w.isStart(i) {
			break // another function's
		}
	}
	if i := slices.IndexFunc(w.lines[index:], isOwn); i >= 0 {
		return w.lines[index+i]
	}
	return nil
}
