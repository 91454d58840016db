// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config/scheme"
)

// onACK is the body of the template's control_ack, which mistakes are put behind.
const onACK = `	if (e->now_ns >= flow->state.increase_at_ns)
		set_rate_bps(flow, flow->state.rate_bps + params.step_bps, e->now_ns);
`

// brokenControls are controls that are wrong, each in one place, and the one message about it:
// with the line, and what to do. Those that only a kernel's verifier finds are in loader
// and TestOwnMistakes.
var brokenControls = []struct{ name, old, new, want string }{
	{"syntax", "increase_at_ns)\n\t\tset_rate", "increase_at_ns\n\t\tset_rate",
		`mine\.c:86:3: error: expected '\)'`},
	{"unknown field", "params.step_bps, e", "params.stepp_bps, e",
		`mine\.c:86:52: error: no member named 'stepp_bps' .*hint: correct`},
	{"unknown function", onACK, onACK + "\twibble(flow);\n",
		`mine\.c:87:2: error: call to undeclared function 'wibble'\n.*hint: correct the name`},
	{"function of the kernel", onACK, onACK + "\tprintk(\"hello\");\n",
		`mine\.c:87:2: error: .* undeclared function 'printk'\n.*hint: a control can't print`},
	{"float", "rate_bps / 2, now", "rate_bps * 0.5, now",
		`mine\.c:103:21: error: .*hint: BPF has no floating-point numbers`},
	{"float in a division", "rate_bps / 2, now", "rate_bps / 1.5, now",
		`mine\.c:103:21: error: .*hint: BPF has no floating-point numbers.*3 / 2 for 1\.5 x`},
	{"double", "\tset_rate_bps(flow, flow->state.rate_bps / 2, now_ns);",
		"\tdouble half = flow->state.rate_bps;\n\tset_rate_bps(flow, half / 2, now_ns);",
		`mine\.c:103:16: error: .*hint: BPF has no floating-point numbers`},
	{"signed division", onACK,
		onACK + "\tflow->state.cuts = (s64)flow->state.rate_bps / (s64)flow->state.pad;\n",
		`mine\.c:87:47: error: unsupported signed division.*hint: BPF divides unsigned`},
	{"division by zero", onACK,
		onACK + "\tflow->state.cuts = flow->state.rate_bps / flow->state.pad;\n",
		`mine\.c:87: function mine_cong.*: division by zero\n.*hint: test the divisor`},
	{"remainder of zero", onACK,
		onACK + "\tflow->state.cuts = flow->state.rate_bps % flow->state.pad;\n",
		`mine\.c:87: function mine_cong.*: division by zero\n.*hint: test the divisor`},
	{"division by the constant 0", onACK, onACK + "\tflow->state.cuts = e->now_ns / 0;\n",
		`mine\.c:87:31: error: division by zero is undefined.*hint: test the divisor`},
	{"index", "\tu32 pad;\n", "\tu32 ring[4]; u32 pad;\n" + marker(
		"\tflow->state.ring[flow->state.cuts + e->acked_bytes] = 1;\n"),
		`mine\.c:87: function mine_cong.*: an index is out of its array's .*hint: limit`},
	{"constant index", "\tu32 pad;\n", "\tu32 ring[4]; u32 pad;\n" + marker(
		"\tflow->state.ring[5] = 1;\n"),
		`mine\.c:87:2: error: array index 5 is past the end .*hint: use an index below`},
	{"endless loop", onACK, onACK + "\twhile (flow->state.rate_bps > 0)\n\t\tflow->state.cuts++;\n",
		`mine\.c:87: function mine_cong.*: loops without an end\n.*give the loop a bound`},
	{"long loop", onACK, onACK + "\tfor (u64 i = 0; i < flow->state.rate_bps; i++)\n" +
		"\t\tflow->state.cuts += i & e->acked_bytes;\n",
		`mine\.c:8[78]: function mine_cong_control .*: loops without an end\n`},
	{"null pointer", onACK, onACK + "\tu32 *p = 0;\n\t*p = 1;\n",
		`mine\.c:88: function mine_cong_control .*: a null pointer.* is followed\n.*hint: compare`},
	{"C library", `#include "algo/red.h"`, "#include \"algo/red.h\"\n#include <math.h>",
		`mine\.c:18.* error: .*hint: BPF has no C library: remove the #include`},
	{"name", "#define CONTROL\t      mine\n", "",
		`its scheme is "CONTROL", not "mine" \(hint: .* or #define CONTROL mine in the file`},
	{"last headers", "#include \"include/rate_control.h\"\n#include \"include/react.h\"\n", "",
		`mine\.c: the object has no congestion control: .*hint: include/rate_control\.h or .* end`},
	{"type of libc", "u64 cut_at_ns;", "uint64_t cut_at_ns;",
		`mine\.c:51:2: error: unknown type name 'uint64_t'\n.*hint: the types of integers are u8`},
	{"time of libc", onACK, onACK + "\tflow->state.cut_at_ns = time(0);\n",
		`mine\.c:87:26: error: .* function 'time'\n.*hint: now_ns\(\) is the time`},
	{"semicolon of another alphabet", onACK, onACK + "\tflow->state.cuts += 1；\n",
		`mine\.c:87:23: error: invalid suffix '；' on integer constant\n\(hint: C is .* in ASCII`},
	{"no such header", `#include "algo/red.h"`, `#include "algo/read.h"`,
		`mine\.c:17:10: fatal error: 'algo/read\.h' file not found.*hint: PCN's headers`},
	{"range", "1kbps to line_rate", "1kbps to line_rat",
		`mine\.c:22: control mine: .*there is no "line_rat"`},
	{"default out of range", `"50us")`, `"5s")`,
		`mine\.c:26: control mine: the default of interval: 5s is out of range`},
	{"value of an attribute", `"hears", "cnp"`, `"hears", "cpn"`,
		`mine\.c:39: control mine: .*unknown hears "cpn" .*want cnp or cnm`},
	{"attribute", `"hears", "cnp"`, `"heers", "cnp"`,
		`mine\.c:39: control mine: .*unknown attribute "heers" .*want one of `},
	{"a function is missing", "u64 control_rate(", "u64 control_speed(",
		`error: control_rate is not defined\n\(hint: add static .* u64 control_rate\(`},
	{"stack", onACK, onACK + "\tvolatile u8 big[600] = {};\n" +
		"\tflow->state.cuts += big[e->acked_bytes % 600];\n",
		`mine\.c:87: error: .*stack limit.*hint: a program has 512 bytes of stack`},
	{"state too large", "\tu32 pad;\n", "\tu32 pad;\n\tu64 hist[100000];\n",
		`mine\.c:55: error: .*hint: .*the flow's state is too large`},
	{"no type", "u64 control_rate(", "control_rate(",
		`mine\.c:107:24: error: type specifier missing.*hint: write the type before the name`},
	{"no value", "\treturn flow->state.rate_bps;\n", "",
		`mine\.c:109:1: error: non-void function .*hint: end it with return and a value`},
	{"uninitialised", onACK, onACK + "\tu64 sum;\n\tsum += e->acked_bytes;\n" +
		"\tflow->state.pad = sum;\n",
		`mine\.c:88:2: error: variable 'sum' is uninitialized .*hint: .* = 0`},
	{"print", onACK, onACK + "\tprintf(\"%llu\\n\", e->now_ns);\n",
		`mine\.c:87:2: error: .*'printf'.*hint: a control can't print: .* STAT`},
	{"heap", onACK, onACK + "\tu64 *copy = malloc(8);\n\t*copy = e->now_ns;\n",
		`mine\.c:87:14: error: .*'malloc'.*hint: BPF has no heap`},
	{"string function", onACK, onACK + "\tflow->state.pad = strlen(\"mine\");\n",
		`mine\.c:87:20: error: .*'strlen'.*hint: BPF has no C library`},
	{"division by zero at the start", "\tset_rate_bps(flow, params.line_rate_bps, now_ns());\n",
		"\tset_rate_bps(flow, 1000 / flow->state.cuts, now_ns());\n",
		`mine\.c:79: function mine_init .*: division by zero\n.*hint: test the divisor`},
	{"header of a parameter", "#include \"algo/red.h\"\n", "",
		`mine\.c:45:25: error: .*incomplete type.*hint: #include "algo/red\.h" defines it`},
	{"first header", "#include \"include/control.h\"\n", "",
		`mine\.c:15: error: unknown type name.*hint: #include "include/control\.h" has to be`},
	{"last header", "#include \"include/react.h\"\n", "",
		`mine\.c:39: control mine: the scheme hears "cnp".*hint: #include "include/react\.h"`},
	{"number of arguments", "rate_bps / 2, now_ns);", "rate_bps / 2);",
		`mine\.c:103:45: error: too few arguments .*hint: it is declared so: \S*mine\.c:66\)`},
	{"type of an argument", "flow->state.rate_bps / 2, now", "&flow->state, now",
		`mine\.c:103:21: error: incompatible pointer .*hint: a pointer is no number`},
	{"name clash", "/* The rate changes now",
		"static u64 now_ns(void)\n{\n\treturn 0;\n}\n\n/* The",
		`mine\.c:65:12: error: redefinition of 'now_ns'.*hint: .*: include/\w+\.h:\d+ has this`},
	{"constant shift", onACK, onACK + "\tflow->state.pad = 1 << 40;\n",
		`mine\.c:87:22: error: shift count .*hint: shift a u64 by less than 64`},
	{"shift", onACK, onACK + "\tflow->state.rate_bps += 1ull << (e->acked_bytes + 64);\n",
		`mine\.c:87: function mine_cong.*: a shift by more bits .*hint: limit it`},
	{"parameter is assigned", "\tflow->state.cuts++;\n", "\tparams.cut = 5;\n",
		`mine\.c:97:13: error: cannot assign .*hint: parameters and events can't be changed`},
	{"parenthesis of a macro", "\"50us\")", "\"50us\"",
		`mine\.c:26:18: error: unterminated .*hint: a \) is missing`},
	{"brace", "\tflow->state.cuts++;\n}\n", "\tflow->state.cuts++;\n",
		`mine\.c:101:1: error: function definition .*hint: a function above it lacks its last }`},
	{"assignment for a comparison", "if (rate_bps < params.min", "if (rate_bps = params.min",
		`mine\.c:68:15: error: .*hint: == compares`},
	{"pointer past the end", "\tu32 pad;\n", "\tu32 ring[4]; u32 pad;\n" + marker(
		"\tu32 *p = flow->state.ring;\n\tp[e->acked_bytes] = 1;\n"),
		`mine\.c:88: function mine_cong.*, or one past the end .*hint: compare .* limit the index`},
	{"recursion", "/* The rate changes now", "static __attribute__((noinline)) u64 tree(u64 n)\n" +
		"{\n\treturn n < 2 ? n : tree(n - 1) + tree(n - 2);\n}\n\n/* The" + marker(
		"\tflow->state.rate_bps += tree(e->acked_bytes);\n"),
		`mine\.c:67: error: function tree calls itself.*hint: write it as a loop`},
	{"print of the kernel", onACK, onACK + "\tbpf_printk(\"%llu\", e->now_ns);\n",
		`mine\.c:87: error: bpf_printk prints .*hint: a control can't print: .* STAT`},
	{"function pointer", "/* The rate changes now", "static __attribute__((noinline)) " +
		"u64 one(u64 n)\n{\n\treturn n;\n}\nstatic __attribute__((noinline)) u64 two(u64 n)\n" +
		"{\n\treturn 2 * n;\n}\n\n/* The" + marker(
		"\tu64 (*f)(u64) = e->acked_bytes & 1 ? one : two;\n\tflow->state.rate_bps += f(2);\n"),
		`mine\.c:\d+: error: a function is called through a pointer.*hint: choose with if`},
	{"pointer that is kept", "\tu32 pad;\n", "\tu32 pad;\n\tu32 *last;\n",
		`mine\.c:55: error: a flow's state keeps the pointer "last".*hint: keep an index`},
	{"array of a size that varies", onACK, onACK + "\tu64 a[e->acked_bytes];\n\ta[0] = 1;\n" +
		"\tflow->state.cuts += a[e->acked_bytes / 2];\n",
		`mine\.c:87:8: error: .*hint: give the array a size that is a constant`},
	{"array of a size that varies, unused", onACK, onACK + "\tu8 buf[e->acked_bytes];\n",
		`mine\.c:87:9: error: variable length .*hint: give the array a size that is a constant`},
	{"array of a size that varies, cleared", onACK, onACK + "\tu32 n = e->acked_bytes;\n" +
		"\tu8 buf[n] = {};\n\tflow->state.cuts += buf[n / 2];\n",
		`mine\.c:88:9: error: variable length .*hint: give the array a size that is a constant`},
	{"event of a CNP for an ACK", "const struct ack_event *e", "const struct cnp_event *e",
		`mine\.c:83: error: control_ack has the wrong type: .*\n` +
			`\(hint: declare it so: static .*control_ack\(.*, const struct ack_event \*e\)`},
	{"event of an ACK for a CNP", "const struct cnp_event *e", "const struct ack_event *e",
		`mine\.c:90: error: control_cnp has the wrong type: .*declare it so: static .*cnp_event`},
	{"event that nobody knows", "const struct ack_event *e", "const struct ack *e",
		`mine\.c:83:\d+: error: declaration of 'struct ack' .*declare it so: static .*ack_event`},
	{"field of another event", onACK, onACK + "\tflow->state.pad = e->marked;\n",
		`mine\.c:87:23: error: no member named 'marked' .*` +
			`hint: struct ack_event has now_ns, .*; struct window_event has marked`},
	{"argument is missing", "flow_entry *flow, u64 now_ns)\n{\n" +
		"\tset_rate_bps(flow, flow->state.rate_bps / 2, now_ns);",
		"flow_entry *flow)\n{\n\tset_rate_bps(flow, 5, now_ns());",
		`mine\.c:101: error: control_loss has the wrong type: .*, u64 now_ns\)`},
	{"operation without a value", "static __always_inline u64 control_rate(const struct " +
		"flow_entry *flow)\n{\n\treturn flow->state.rate_bps;",
		"static __always_inline void control_rate(struct flow_entry *flow)\n{\n",
		`mine\.c:107: error: control_rate has the wrong type: .*static __always_inline u64`},
	{"brace at the beginning", "const struct ack_event *e)\n{", "const struct ack_event *e)\n",
		`mine\.c:85:2: error: expected function body .*hint: look at the end`},
	{"name of a flag", "TCP_CONG_NEEDS_ECN\n", "TCP_CONG_NEED_ECN\n",
		`mine\.c:63: error: .*'TCP_CONG_NEED_ECN'\n.*hint: correct the name`},
	{"flags", "#define CONTROL_FLAGS TCP_CONG_NEEDS_ECN\n", "",
		`mine\.c:\d+: error: .*'CONTROL_FLAGS'\n.*hint: #define it before the last #include`},
	{"head of the flow", "\tFLOW_HEAD;\n", "",
		`mine\.c:\d+: error: no member named .*hint: struct flow_entry begins with FLOW_HEAD`},
	{"two texts of PARAM", "\"1us to 1s\",\n\t\t\t      \"50us\")", "\"1us to 1s\")",
		`mine\.c:26:\d+: error: .*hint: PARAM takes documentation, range, default`},
	{"word of Python", onACK, onACK + "\tbool first = True;\n",
		`mine\.c:87:15: error: .*hint: C has NULL, true and false`},
	{"unit of a default", "\"50us\")", "\"50usec\")",
		`mine\.c:26: control mine: .*"50usec" has an unknown unit .*hint: write a time as 5us`},
	{"unit of a name", "u64 step_bps PARAM",
		"u64 wait_us PARAM(\"Wait\", \"1us to 1s\", \"5us\");\n\tu64 step_bps PARAM",
		`mine\.c:24: control mine: .*its name ends in "_us".*hint: end it in _ns`},
	{"kind of sender", `"sender", "rate"`, `"sender", "window"`,
		`mine\.c:36: control mine: its sender is "window".*hint: include/rate_control.h makes`},
	{"hears nothing", "\tSCHEME(\"hears\", \"cnp\") ", "\t",
		`mine\.c:38: control mine: receivers answer .*hint: add SCHEME\("hears", "cnp"\)`},
	{"no file of a rule", `SCHEME("marker", "red")`, `SCHEME("marker", "own ./marc.h")`,
		`mine\.c:37: error: file \./marc\.h can't be read: .*hint: its path begins at the folder`},
	{"rate 0", "\treturn flow->state.rate_bps;\n", "\treturn 0;\n",
		`function mine_init .*: control_rate .* returned 0, .*hint: a rate is in bit/s`},
	{"rate below 0", "\treturn flow->state.rate_bps;\n",
		"\treturn flow->state.rate_bps - 60000000000ULL;\n",
		`function mine_init .*: control_rate .* went below 0, .*hint: a rate is in bit/s`},
	{"root", onACK, onACK + "\tflow->state.cuts = sqrt(e->acked_bytes);\n",
		`mine\.c:87:21: error: .*'sqrt'.*hint: .* write it for integers`},
	{"random", onACK, onACK + "\tif (rand() < 5)\n\t\tflow->state.cuts++;\n",
		`mine\.c:87:6: error: .*'rand'.*hint: .* can't ask for random numbers`},
	{"maximum", onACK, onACK + "\tflow->state.cuts = max(e->acked_bytes, 5);\n",
		`mine\.c:87:21: error: .*'max'.*hint: write it out: a < b \? a : b`},
	{"below zero", onACK, onACK + "\tif (flow->state.rate_bps - params.step_bps < 0)\n" +
		"\t\treturn;\n",
		`mine\.c:87:45: error: .* always false.*hint: unsigned numbers are never below 0`},
	{"power", onACK, onACK + "\tflow->state.cuts = 2 ^ 10;\n",
		`mine\.c:87:23: error: .*hint: \^ is not a power`},
	{"empty body", onACK, onACK + "\tif (e->acked_bytes > 5);\n\t\tflow->state.cuts++;\n",
		`mine\.c:87:25: error: .*hint: remove the ;`},
	{"product of ints", onACK, onACK + "\tflow->state.rate_bps = 40 * 1000 * 1000 * 1000;\n",
		`mine\.c:87:42: error: overflow .*hint: make one number 64 bits wide`},
	{"number too large", onACK, onACK + "\tu32 r = 40e9;\n\tflow->state.rate_bps = r;\n",
		`mine\.c:87:10: error: .*out of range.*hint: choose a type that is large enough`},
	{"comparison as a statement", onACK, onACK + "\tflow->state.rate_bps == 5;\n",
		`mine\.c:87:23: error: .*result unused.*hint: assign it`},
	{"precedence", onACK, onACK + "\tif (flow->state.cuts & 1 == 1)\n\t\treturn;\n",
		`mine\.c:87:23: error: .*precedence.*hint: put parentheses`},
	{"dot", onACK, onACK + "\tflow->state.cuts = e.now_ns;\n",
		`mine\.c:87:22: error: .* is a pointer.*hint: it is a pointer: write ->`},
	{"field without a value", onACK, onACK + "\tstruct { u64 a, b; } t;\n\tt.a = e->now_ns;\n" +
		"\tflow->state.pad = t.b;\n",
		`mine\.c:89:18: error: Assigned value is garbage .*hint: .* = \{\} for a struct`},
	{"field with a value at times", onACK, onACK + "\tstruct { u64 a, b; } t, u;\n" +
		"\tt.a = 1;\n\tif (e->acked_bytes > 5)\n\t\tt.b = 2;\n\tu = t;\n" +
		"\tset_rate_bps(flow, u.b, e->now_ns);\n",
		`mine\.c:92:2: error: 2nd function call argument is .*hint: give it a value`},
	{"lock", onACK, onACK + "\tbpf_spin_lock(&flow->lock);\n\tflow->state.cuts++;\n",
		`mine\.c:87: error: a flow's lock is taken .* twice.*hint: remove it`},
	{"lock given back", onACK, onACK + "\tbpf_spin_unlock(&flow->lock);\n",
		`mine\.c:87: error: a flow's lock is taken or given back twice.*hint: remove it`},
	{"time under the lock", onACK, onACK + "\tflow->state.cut_at_ns = now_ns();\n",
		`mine\.c:87: error: a helper of BPF is called under .*hint: .* e->now_ns is the time`},
	{"helper under the lock", onACK, onACK + "\tflow->state.pad = bpf_get_prandom_u32();\n",
		`mine\.c:87: error: a helper of BPF is called under .*hint: a control's functions hold`},
	{"type of C++", onACK, onACK + "\tauto rate = e->acked_bytes;\n\tflow->state.pad = rate;\n",
		`mine\.c:87:7: error: type specifier missing.*hint: write the type`},
}

// sharedVariables are no mistakes for a compiler. A run has one warning, with the line.
var sharedVariables = []struct{ name, file, old, new, want string }{
	{"variable", "mine.c", "/* The rate changes", "static u64 seen;\n\n/* The rate changes" +
		marker("\tflow->state.pad = seen++;\n"),
		`mine\.c:69: all flows of all hosts share the variable seen\n\(hint: keep it in the state`},
	{"variable of a function", "mine.c", onACK, onACK +
		"\tstatic u32 cuts;\n\tflow->state.cuts = cuts++;\n",
		`mine\.c:92: all flows of all hosts share the variable cuts\n\(hint: keep it in the state`},
	{"variable of a rule", "rule.h", before, "\tstatic u32 seen;\n\tseen += e->len_bytes;\n" +
		"\tif (seen & 1)\n\t\treturn true;\n" + before,
		`rule\.h:32: all flows of all hosts share the variable seen\n\(hint: keep it in the state`},
	{"variable of a point", "point.c", "\tstate->marked++;\n",
		"\tstatic u32 seen;\n\tstate->marked += seen++;\n",
		`point\.c:43: all flows of all hosts share the variable seen\n\(hint: keep it in the st`},
}

// marker separates what stands for old from a line to put elsewhere in the file.
func marker(line string) string { return "\x00" + line }

// Each mistake has one message, with its line and what to do about it.
func TestBrokenControls(t *testing.T) {
	qt.Assert(t, qt.IsTrue(len(brokenControls) >= 40))
	dir := t.TempDir()
	_, stderr, code := run(t, "scheme", "new", "mine", "--dir", dir)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	good, err := os.ReadFile(filepath.Join(dir, "mine.c"))
	qt.Assert(t, qt.IsNil(err))
	// also with a section of the control's own, whose keys nothing knows if it does not compile
	experiment, err := os.ReadFile(filepath.Join(dir, "mine.yaml"))
	qt.Assert(t, qt.IsNil(err))
	for _, m := range brokenControls {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			replaced, behind, _ := strings.Cut(m.new, marker(""))
			bad := strings.Replace(string(good), m.old, replaced, 1)
			bad = strings.Replace(bad, onACK, onACK+behind, 1)
			qt.Assert(t, qt.Not(qt.Equals(bad, string(good))))
			here := t.TempDir()
			qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(here, "mine.c"), []byte(bad), 0o600)))
			file := filepath.Join(here, "mine.yaml")
			qt.Assert(t, qt.IsNil(os.WriteFile(file,
				append(experiment, "\nmine: {cut: 0.25}\n"...), 0o600)))
			refused(t, file, "sim", m.want)
		})
	}
}

// refused runs an experiment that fails with one message.
func refused(t *testing.T, file, engine, want string) {
	t.Helper()
	_, stderr, code := run(t, "run", file, "--engine", engine, "--duration", "1ms", "--out",
		filepath.Join(t.TempDir(), "out"))
	qt.Assert(t, qt.Equals(code, 1))
	qt.Check(t, qt.IsTrue(regexp.MustCompile("(?s)"+want).MatchString(stderr)),
		qt.Commentf("%s", stderr))
	count := strings.Count(stderr, "error: ")
	qt.Check(t, qt.IsTrue(count <= 1), qt.Commentf("%d messages: %s", count, stderr))
	qt.Check(t, qt.Equals(strings.Count(stderr, "hint: "), 1), qt.Commentf("%s", stderr))
	for _, noise := range []string{"unknown key", "wasm stack trace", "/tmp/pcn-compile",
		"scratch space"} {
		qt.Check(t, qt.Not(qt.StringContains(stderr, noise)))
	}
}

// brokenRules are marking rules (rule.h) and notification points (point.c) that are wrong.
var brokenRules = []struct {
	name, file, old, new, want string
	// kernel is the message of a kernel, where it is another; silent: it has a warning
	kernel string
	warns  bool
}{
	{name: "rule: float", file: "rule.h", old: before, new: "\tstate->marked_packets = " +
		"e->queue_bytes * 0.5;\n" + before,
		want: `compile \S*rule\.h:\n\S*rule\.h:32:26: error: .*hint: BPF has no floating-point`},
	{name: "rule: index", file: "rule.h", old: before, new: "\tu32 ring[4] = {};\n" +
		"\tring[e->len_bytes] = 1;\n\tstate->marked_packets += ring[e->random & 3];\n" + before,
		want:   `rule\.h:33: function port_depart .*: an index is out .*hint: limit the index`,
		kernel: `rule\.h:3[23]: the kernel's verifier refuses .*hint: `},
	{name: "rule: null pointer", file: "rule.h", old: before,
		new:    "\tu32 *x = 0;\n\t*x = e->len_bytes;\n" + before,
		want:   `rule\.h:33: function port_depart .*: a null pointer.*hint: compare the pointer`,
		kernel: `rule\.h:33: the kernel's verifier refuses .*hint: only a pointer`},
	{name: "rule: division", file: "rule.h", old: before,
		new:    "\tif (e->queue_bytes / state->marked_packets > 3)\n\t\treturn true;\n" + before,
		want:   `rule\.h:32: function port_depart .*: division by zero\n.*hint: test the divisor`,
		kernel: `warning: mine: rule\.h:32: a division by zero, .*hint: test the divisor`,
		warns:  true},
	{name: "rule: endless", file: "rule.h", old: before,
		new:  "\twhile (p->threshold_ns)\n\t\tstate->marked_packets++;\n" + before,
		want: `: loops without an end\n.*hint: .* give the loop a bound`,
		kernel: `rule\.h:3[23]: the kernel's verifier refuses .*: infinite loop .*` +
			`hint: give the loop a bound`},
	{name: "rule: field", file: "rule.h", old: "e->sojourn_ns", new: "e->queue_len",
		want: `rule\.h:32:9: error: .*'queue_len' .*hint: struct mark_event has now_ns, `},
	{name: "rule: name", file: "rule.h", old: "bool own_mark", new: "bool my_mark",
		want: `rule\.h:12: error: own_mark is not defined\n.*hint: add static .*bool own_mark\(`},
	{name: "rule: state", file: "rule.h", old: "struct own_marker {\n\tu64 marked_packets;\n};\n",
		new: "", want: `rule\.h:\d+:\d+: error: .*struct own_marker'.*hint: `},
	{name: "rule: clash of names", file: "rule.h", old: "struct own_marker {",
		new:  "static u64 seen;\n\nstruct own_marker {",
		want: `rule\.h:21: error: redefinition .*hint: .*: kernel/\w+\.h:\d+ has this one`},
	{name: "rule: field without a value", file: "rule.h", old: before,
		new: "\tstruct { u64 a, b; } t;\n\tt.a = e->len_bytes;\n" +
			"\tstate->marked_packets = t.b;\n" + before,
		want: `rule\.h:34:24: error: Assigned value is garbage.*hint: give it a value`},
	{name: "rule: unit", file: "rule.h", old: "1ns to 1s", new: "1ns to 1sec",
		want: `rule\.h:16: control mine: .*"1sec" has an unknown unit .*hint: write a time`},
	{name: "rule: recursion", file: "rule.h", old: "/* State of a port", new: "static " +
		"__noinline u64 tree(u64 n)\n{\n\treturn n < 2 ? n : tree(n - 1) + tree(n - 2);\n}\n\n" +
		"/* State of a port" + marker("\tstate->marked_packets += tree(e->random);\n"),
		want: `rule\.h:22: error: function tree calls itself.*hint: write it as a loop`},
	{name: "rule: not included", file: "mine.c", old: "#include \"rule.h\"\n", new: "",
		want: `mine\.c:50:32: error: .*incomplete type.*hint: #include "rule\.h" defines it`},
	{name: "point: parameters", file: "mine.c", old: "\tu32 pad;\n};\nconst struct point",
		new:  "};\nconst struct point",
		want: `mine\.c:\d+: error: np_params has every at 0 \(4 bytes\).*hint: declare both`},
	{name: "point: division", file: "point.c", old: "\tstate->marked++;\n",
		new:    "\tstate->marked += 10 / state->pad;\n",
		want:   `point\.c:43: function simulate_packet .*: division by zero\n.*hint: test`,
		kernel: `warning: mine: point\.c:43: a division by zero, .*hint: test the divisor`,
		warns:  true},
}

// before is what the template's own_mark begins with.
const before = "\tif (e->sojourn_ns <= p->threshold_ns)\n"

// Mistakes in marking rules and notification points have one message too, on both engines.
func TestBrokenRules(t *testing.T) {
	good := withRules(t)
	for _, m := range brokenRules {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			here, behind := spoiled(t, good, m.file, m.old, m.new)
			if behind != "" {
				edit(t, here, m.file, before, behind+before)
			}
			file := filepath.Join(here, "mine.yaml")
			refused(t, file, "sim", m.want)
			if m.kernel == "" {
				return // the compiler has refused it
			}
			if !m.warns {
				refused(t, file, "kernel", m.kernel)
				return
			}
			stdout, stderr, _ := run(t, "run", file, "--duration", "2ms", "--out",
				filepath.Join(here, "out"))
			qt.Check(t, qt.Matches(stdout, "(?s).*"+m.kernel+".*"), qt.Commentf("%s", stderr))
		})
	}
}

// withRules returns a folder with mine.c, and a marking rule and a notification point of its own.
func withRules(t *testing.T) string {
	t.Helper()
	good := t.TempDir()
	for _, args := range [][]string{
		{"mine"}, {"rule", "--kind", "marker"}, {"point", "--kind", "notification"},
	} {
		_, stderr, code := run(t, append([]string{"scheme", "new", "--dir", good}, args...)...)
		qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	}
	edit(t, good, "mine.c", `SCHEME("marker", "red")`, `SCHEME("marker", "own ./rule.h")`)
	edit(t, good, "mine.c", `SCHEME("notification", "marked")`,
		`SCHEME("notification", "own ./point.c")`)
	edit(t, good, "mine.c", "const struct red_params",
		"#include \"rule.h\"\nconst struct own_marker_params")
	edit(t, good, "mine.c", "const struct dcqcn_np_params", "struct point_params {\n\tu32 every "+
		"PARAM(\"Marks per CNP\", \"1 to 9\", \"1\");\n\tu32 pad;\n};\nconst struct point_params")
	return good
}

// A variable that flows share has one warning, also when a finished run is repeated.
func TestSharedVariables(t *testing.T) {
	t.Parallel()
	good := withRules(t)
	for _, m := range sharedVariables {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			here, behind := spoiled(t, good, m.file, m.old, m.new)
			if behind != "" {
				edit(t, here, m.file, onACK, onACK+behind)
			}
			out := filepath.Join(here, "out")
			for _, args := range [][]string{
				{"run", filepath.Join(here, "mine.yaml"), "--out", out},
				{"run", filepath.Join(out, "mine", "experiment.yaml"), "--out", out + "2"},
			} {
				_, stderr, _ := run(t, append(args, "--engine", "sim", "--duration", "1ms")...)
				qt.Check(t, qt.Matches(stderr, "(?s).*warning: "+m.want+".*"))
				qt.Check(t, qt.Equals(strings.Count(stderr, "warning: "), 1))
			}
		})
	}
}

// spoiled returns a copy of a folder in which one file has new in place of old, and what a marker
// separates from new: it belongs elsewhere in the file.
func spoiled(t *testing.T, good, file, old, new string) (here, behind string) {
	t.Helper()
	here = t.TempDir()
	qt.Assert(t, qt.IsNil(os.CopyFS(here, os.DirFS(good))))
	replaced, behind, _ := strings.Cut(new, marker(""))
	edit(t, here, file, old, replaced)
	return here, behind
}

// edit replaces a text in a file, which has it.
func edit(t *testing.T, dir, name, old, new string) {
	t.Helper()
	text := string(read(t, dir, name))
	qt.Assert(t, qt.StringContains(text, old))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, name),
		[]byte(strings.Replace(text, old, new, 1)), 0o600)))
}

// A control that begins as a built-in one does the same, packet by packet.
func TestSchemeFrom(t *testing.T) {
	froms := []string{"dctcp"} // Linux's own, whose C file is that of pcn_dctcp
	for _, name := range scheme.Builtin().Names() {
		if _, err := fs.Stat(bpf.Controls, "cc/"+name+".bpf.c"); err == nil {
			froms = append(froms, name)
		}
	}
	qt.Assert(t, qt.IsTrue(len(froms) > 8), qt.Commentf("%v", froms))
	for _, from := range froms {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, stderr, code := run(t, "scheme", "new", "my_own", "--from", from, "--dir", dir)
			qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
			file, out := filepath.Join(dir, "my_own.yaml"), filepath.Join(dir, "out")
			s, err := scheme.Builtin().Lookup(from)
			qt.Assert(t, qt.IsNil(err))
			schemes := "my_own"
			if !scheme.IsKernelControl(s.Control) {
				schemes += "," + from
			}
			_, stderr, code = run(t, "run", file, "--algo", schemes, "--engine", "sim",
				"--duration", "10ms", "--out", out)
			qt.Assert(t, qt.IsTrue(code == 0 || code == 3), qt.Commentf("%s", stderr))
			if scheme.IsKernelControl(s.Control) {
				return // Linux's own is not simulated
			}
			series := func(name string) string {
				data, err := os.ReadFile(filepath.Join(out, name, "series.csv"))
				qt.Assert(t, qt.IsNil(err))
				return string(data)
			}
			qt.Check(t, qt.IsTrue(series("my_own") == series(from)))
		})
	}
	_, stderr, code := run(t, "scheme", "new", "mine", "--from", "dcqn", "--dir", t.TempDir())
	qt.Check(t, qt.Equals(code, 2))
	qt.Check(t, qt.Matches(stderr, `(?s).*--from dcqn: no built-in control .*"dcqcn".*`))
}

// Files that exist are kept, unless --force is given.
func TestSchemeNewKeepsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.c")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte("old"), 0o600)))
	_, stderr, code := run(t, "scheme", "new", "mine", "--dir", dir)
	qt.Check(t, qt.Equals(code, 1))
	qt.Check(t, qt.Matches(stderr, `(?s).*mine\.c is there already: .*--force.*`))
	qt.Check(t, qt.Equals(string(read(t, file)), "old"))
	_, stderr, code = run(t, "scheme", "new", "mine", "--dir", dir, "--force")
	qt.Check(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	qt.Check(t, qt.StringContains(string(read(t, file)), "control_ack"))
}
