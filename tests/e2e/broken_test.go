// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

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
		`mine\.c:87:2: error: call to undeclared function 'printk'\n.*hint: correct the name`},
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
		`mine\.c:88: function mine_cong_control .*: a null pointer is followed\n.*hint: compare`},
	{"C library", `#include "algo/red.h"`, "#include \"algo/red.h\"\n#include <math.h>",
		`error: .*hint: BPF has no C library: remove the #include`},
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
		`on_ack: error: .*stack limit.*hint: a program has 512 bytes of stack`},
	{"state too large", "\tu32 pad;\n", "\tu32 pad;\n\tu64 hist[100000];\n",
		`start: error: .*hint: .*the flow's state is too large`},
}

// marker separates what stands for old from a line to put behind onACK.
func marker(line string) string { return "\x00" + line }

// Each mistake has one message, with its line and what to do about it.
func TestBrokenControls(t *testing.T) {
	qt.Assert(t, qt.IsTrue(len(brokenControls) >= 20))
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
			replaced, behind, _ := strings.Cut(m.new, "\x00")
			bad := strings.Replace(string(good), m.old, replaced, 1)
			bad = strings.Replace(bad, onACK, onACK+behind, 1)
			qt.Assert(t, qt.Not(qt.Equals(bad, string(good))))
			here := t.TempDir()
			qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(here, "mine.c"), []byte(bad), 0o600)))
			file := filepath.Join(here, "mine.yaml")
			qt.Assert(t, qt.IsNil(os.WriteFile(file,
				append(experiment, "\nmine: {cut: 0.25}\n"...), 0o600)))
			_, stderr, code := run(t, "run", file, "--engine", "sim", "--duration", "1ms", "--out",
				filepath.Join(here, "out"))
			qt.Assert(t, qt.Equals(code, 1))
			qt.Check(t, qt.IsTrue(regexp.MustCompile("(?s)"+m.want).MatchString(stderr)),
				qt.Commentf("%s", stderr))
			count := strings.Count(stderr, "error: ")
			qt.Check(t, qt.IsTrue(count <= 1), qt.Commentf("%d messages: %s", count, stderr))
			for _, noise := range []string{"unknown key", "wasm stack trace", "/tmp/pcn-compile",
				"scratch space"} {
				qt.Check(t, qt.Not(qt.StringContains(stderr, noise)))
			}
		})
	}
}

// A control that begins as a built-in one does the same, packet by packet.
func TestSchemeFrom(t *testing.T) {
	for _, from := range []string{"dcqcn", "dctcp", "dctcp_rate", "hpcc", "ibcc", "ldcp", "pcn",
		"qcn",
		"timely"} {
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
