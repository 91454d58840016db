// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/config/scheme/compile"
	"github.com/pcn-linux/pcn/internal/experiment"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// ownExperiment has a control of the user's own in mine.c.
const ownExperiment = `
name: own
topology: {kind: dumbbell, senders: 2, rate: 10Gbps, delay: 5us}
algorithms: {mine: mine.c}
schemes: [mine]
warmup: 0ms
duration: 2ms
flows: [{name: F, from: A0..A1, to: B0, start: 0ms}]
`

// ownParts have the control rate.c use the templates of a marking rule and a notification point.
var ownParts = strings.NewReplacer(
	`SCHEME("marker", "red")`, `SCHEME("marker", "own ./mark.h")`,
	`SCHEME("notification", "marked")`, `SCHEME("notification", "own ./np.c")`,
	`const struct red_params marker_params PREFIX("marking") = {};`,
	"#include \"mark.h\"\nconst struct own_marker_params marker_params PREFIX(\"marking\") = {};",
	"const struct dcqcn_np_params np_params = {};",
	`struct every_params {
	u32 every PARAM("A CNP answers every so many marked packets", "1 to 1000", "7");
	u32 pad;
};
const struct every_params np_params = {};`)

// ownFolder has ownExperiment and the templates, of which one is the control mine.c.
func ownFolder(t *testing.T, control string, change func(source string) string) string {
	t.Helper()
	dir := t.TempDir()
	templates, err := fs.Sub(bpf.Templates, "templates")
	qt.Assert(t, qt.IsNil(err))
	names, err := fs.Glob(templates, "*.[ch]")
	qt.Assert(t, qt.IsNil(err))
	for _, name := range names {
		data, err := fs.ReadFile(templates, name)
		qt.Assert(t, qt.IsNil(err))
		text := strings.ReplaceAll(string(data), "NAME", "mine")
		writeFile(t, filepath.Join(dir, name), text)
		if name == control {
			changed := change(text)
			qt.Assert(t, qt.IsTrue(changed != text))
			writeFile(t, filepath.Join(dir, "mine.c"), changed)
		}
	}
	writeFile(t, filepath.Join(dir, "own.yaml"), ownExperiment)
	return dir
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(text), 0o600)))
}

// loadOwn compiles what ownFolder wrote.
func loadOwn(t *testing.T, dir string) *experiment.Experiment {
	t.Helper()
	return loadFile(t, filepath.Join(dir, "own.yaml"))
}

// loadFile compiles the schemes of an experiment's file.
func loadFile(t *testing.T, path string) *experiment.Experiment {
	t.Helper()
	compiler := func(ctx context.Context, path string) (scheme.Own, error) {
		return compile.Scheme(ctx, path,
			compile.Sources{Kernel: npecn.Source(), Simulator: Source()})
	}
	e, err := experiment.LoadWith(path, experiment.Options{Compile: compiler})
	qt.Assert(t, qt.IsNil(err))
	return e
}

const ownInclude = "#include \"include/control.h\"\n"

func comment(source string) string { return source + "/* mine */\n" }

// Each template of a control runs, and shares the link fairly.
func TestOwnControls(t *testing.T) {
	for _, template := range []string{"rate.c", "window.c"} {
		run := simulate(t, loadOwn(t, ownFolder(t, template, comment)), "mine")
		qt.Assert(t, qt.HasLen(run.Flows, 2))
		a, b := run.Flows[0].ReceivedBytes, run.Flows[1].ReceivedBytes
		qt.Check(t, qt.IsTrue(a > b/2 && b > a/2 && a+b > 1_000_000),
			qt.Commentf("%s: %d and %d bytes", template, a, b))
	}
}

// A marking rule and a notification point of the user's own work with their parameters.
func TestOwnParts(t *testing.T) {
	dir := ownFolder(t, "rate.c", ownParts.Replace)
	run := simulate(t, loadOwn(t, dir), "mine")
	for _, f := range run.Flows {
		qt.Check(t, qt.IsTrue(f.MarkedPackets > 0))
		qt.Check(t, qt.Equals(f.CNPDecrease, f.MarkedPackets/7))
	}
}

// An array of a control has all its values, and they last.
func TestOwnMaps(t *testing.T) {
	dir := ownFolder(t, "rate.c", func(source string) string {
		const body = "\tset_rate_bps(flow, params.line_rate_bps, now_ns());\n"
		return strings.Replace(strings.Replace(source, body, `	u32 key = 1;
	u64 *value = bpf_map_lookup_elem(&counts, &key);

	if (value)
		(*value) += 2;
	flow->state.cuts = value ? *value + (bpf_get_prandom_u32() == 0) : 0;
`+body, 1), ownInclude, ownInclude+`
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");
`, 1)
	})
	run := simulate(t, loadOwn(t, dir), "mine")
	most := uint64(0)
	for _, f := range run.Flows {
		qt.Assert(t, qt.HasLen(f.Stats, 1))
		most = max(most, uint64(f.Stats[0].Value))
	}
	qt.Check(t, qt.IsTrue(most > 2 && most%2 == 0), qt.Commentf("%d", most))
}

// What can't be simulated runs on kernels only, and the simulator says why.
func TestOwnIsMissing(t *testing.T) {
	const body = "\tset_rate_bps(flow, params.line_rate_bps, now_ns());\n"
	for _, test := range []struct{ name, code, head, want string }{
		{"kfunc", "\ttcp_slow_start(0, 0);\n",
			"extern u32 tcp_slow_start(void *sock, u32 acked) __ksym;\n",
			"(?s).*scheme mine was not compiled for the simulator: link mine.c:\n" +
				".*undefined symbol: tcp_slow_start; or run it with `--engine kernel`"},
		{"helper", "\tflow->state.cuts += bpf_get_smp_processor_id();\n", "",
			"(?s).*function mine_init of module mine: .*it calls a BPF helper that the " +
				"simulator lacks.*"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := ownFolder(t, "rate.c", func(source string) string {
				with := strings.Replace(source, body, body+test.code, 1)
				return strings.Replace(with, ownInclude, ownInclude+test.head, 1)
			})
			_, err := simulator.Run(t.Context(), loadOwn(t, dir), "mine", func(float64) {})
			qt.Check(t, qt.ErrorMatches(err, test.want))
		})
	}
}

// Without a linker for wasm a control is compiled for kernels, and the message says what is
// missing.
func TestOwnWithoutLinker(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"clang-19", "llvm-strip-19"} {
		path, err := exec.LookPath(name)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsNil(os.Symlink(path, filepath.Join(bin, name))))
	}
	t.Setenv("PATH", bin)
	e := loadOwn(t, ownFolder(t, "rate.c", comment))
	_, err := simulator.Run(t.Context(), e, "mine", func(float64) {})
	qt.Check(t, qt.ErrorMatches(err, "(?s).*scheme mine was not compiled for the simulator: "+
		"no wasm-ld-19 is installed: apt install lld-19; or run it with `--engine kernel`"))
}

// A loop without an end ends the run, by itself and at once when it is interrupted, and says where
// it is. Other schemes do not ask whether they may go on.
func TestOwnLoopsForEver(t *testing.T) {
	const body = "\tflow->state.cuts++;\n"
	dir := ownFolder(t, "rate.c", func(source string) string {
		return strings.Replace(source, body, body+"\tfor (;;)\n\t\t;\n", 1)
	})
	e := loadOwn(t, dir)
	const want = "(?s).*function simulate_cnp of module mine: loops without an end.*" +
		"give the loop a bound.*"
	_, err := simulator.Run(t.Context(), e, "mine", func(float64) {})
	qt.Check(t, qt.ErrorMatches(err, want))

	ctx, cancel := context.WithCancel(t.Context())
	dog := &watchdog{ctx: ctx}
	dog.stillRunning()
	dog.stillRunning()
	cancel()
	qt.Check(t, qt.PanicMatches(dog.stillRunning, errEndless.Error()))
	dog.begin()
	dog.stillRunning() // this call may return at once
}

// So does one in a marking rule, which the simulator calls before the run begins, and during it.
func TestOwnMarkerLoopsForEver(t *testing.T) {
	dir := ownFolder(t, "rate.c", ownParts.Replace)
	path := filepath.Join(dir, "mark.h")
	source, err := os.ReadFile(path)
	qt.Assert(t, qt.IsNil(err))
	const returns = "\treturn "
	at := strings.LastIndex(string(source), returns)
	qt.Assert(t, qt.IsTrue(at > 0))
	writeFile(t, path, string(source[:at])+"\tfor (;;)\n\t\t;\n"+string(source[at:]))
	_, err = simulator.Run(t.Context(), loadOwn(t, dir), "mine", func(float64) {})
	qt.Check(t, qt.ErrorMatches(err, "(?s).*function port_depart of module port: loops without.*"))
}
