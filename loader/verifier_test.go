// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/loader"
)

// Logs as kernels write them, of a program that reads a register before it is set.
const (
	logOf618 = `0: R1=ctx() R10=fp0
; return x; @ mine.c:42
0: (bf) r0 = r5
R5 !read_ok
processed 1 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0`

	logOf73 = `0: R1=ctx() R10=fp0
; return x; @ mine.c:42
0: (bf) r0 = r5
R5 !read_ok

Verification failed: Register Type Safety: Unreadable register

Reason:
  R5 has never been initialized on this path, so the verifier cannot use it as an input.

At:
  insn 0
       | ^-- error: R5 is not readable
  Instruction context:
  >>> 0 | (bf) r0 = r5
      1 | (95) exit

Causal path:
  no retained diagnostic events on this path

Suggestion:
  Initialize R5 on every path before this instruction.

processed 1 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0`
)

// A refusal says where, and the kernel's reason, not what else it says.
func TestRefusalsHaveTheReason(t *testing.T) {
	cause := errors.New("permission denied")
	for name, c := range map[string]struct{ log, want string }{
		"6.18": {logOf618, "mine.c:42: the kernel's verifier refuses the program: R5 !read_ok: " +
			"permission denied\n\treturn x;"},
		"7.3": {logOf73, "mine.c:42: the kernel's verifier refuses the program: R5 has never " +
			"been initialized on this path, so the verifier cannot use it as an input: " +
			"permission denied\n\treturn x;"},
		"loop": {"; while (x > 0) @ mine.c:42\ninfinite loop detected at insn 7\n" +
			"cur state: R0=0\nold state: R10=fp0\nprocessed 9 insns (limit 1000000)",
			"mine.c:42: the kernel's verifier refuses the program: infinite loop detected " +
				"at insn 7: permission denied\n\twhile (x > 0)\n(hint: give the loop a bound " +
				"that is a constant: for (u32 i = 0; i < 16; i++))"},
		"no value": {"Subprogram 1 reaches its last instruction 634 without an exit or jump",
			"the kernel's verifier refuses the program: Subprogram 1 reaches its last " +
				"instruction 634 without an exit or jump: permission denied\n(hint: clang left " +
				"out code that reads what has no value: give each variable, field and element " +
				"one before it is read)"},
		"no source": {strings.ReplaceAll(logOf618, "; return", "return"),
			"the kernel's verifier refuses the program: R5 !read_ok: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			err := loader.ExplainVerifier(&ebpf.VerifierError{
				Cause: cause, Log: strings.Split(c.log, "\n"),
			})
			qt.Check(t, qt.Equals(err.Error(), c.want))
			qt.Check(t, qt.ErrorIs(err, cause))
		})
	}
}
