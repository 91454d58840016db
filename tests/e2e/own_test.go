// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/socket"
)

// outside copies the sources of a scheme to a folder outside the tree, where nothing of the project is.
func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	qt.Assert(t, qt.IsNil(os.CopyFS(dir, os.DirFS("testdata/own"))))
	return dir
}

// runs runs an experiment that must meet its bounds, and returns the result of one scheme.
func runs(t *testing.T, scheme string, args ...string) *result.Run {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	stdout, stderr, code := run(t, append([]string{"run", "--out", out}, args...)...)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
	r, err := result.Read(filepath.Join(out, scheme))
	qt.Assert(t, qt.IsNil(err))
	return r
}

const ownYAML = `name: own
topology: {kind: dumbbell, senders: 2, rate: 10Gbps, delay: 5us}
algorithms: {dctcpr: dctcpr.c}
schemes: [dctcpr, pcn]
dctcpr: {g: 1/32, step: 100Mbps, marking: {threshold: 20us}}
warmup: 0ms
duration: 10ms
flows:
  - {name: F0, from: A0, to: B0, start: 0ms}
  - {name: F1, from: A1, to: B1, start: 0ms}
expect:
  - {what: utilisation, scheme: dctcpr, metric: utilisation, ports: [S0->S1], from: 5ms, min: 80%}
  - {what: Jain's index, scheme: dctcpr, metric: jain, flows: [F0, F1], from: 5ms, min: 0.9}
`

// A rate-based control like DCTCP, with a marking rule whose threshold is a time, is written outside the
// tree, and runs beside one that comes along. Its parameters are set by name in the experiment.
func TestOwnControlAndMarker(t *testing.T) {
	t.Parallel()
	dir := outside(t)
	file := filepath.Join(dir, "own.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(ownYAML), 0o600)))
	r := runs(t, "dctcpr", file)
	qt.Check(t, qt.IsTrue(len(r.Flows) == 2))
	for _, f := range r.Flows {
		qt.Check(t, qt.IsTrue(f.MarkedPackets > 0 && f.MarkedPackets < f.Packets),
			qt.Commentf("%d of %d packets marked", f.MarkedPackets, f.Packets))
		qt.Assert(t, qt.Equals(len(f.Stats), 1))
		qt.Check(t, qt.Equals(f.Stats[0].Key, "alpha"))
		qt.Check(t, qt.IsTrue(f.Stats[0].Value > 0 && f.Stats[0].Value < 1), qt.Commentf("%g", f.Stats[0].Value))
	}
	for _, p := range r.Ports {
		if p.Name == "S0->S1" { // 20 us at 10 Gbit/s
			qt.Check(t, qt.IsTrue(p.QueueMaxBytes > 25_000), qt.Commentf("%d bytes", p.QueueMaxBytes))
		}
	}
}

// Each template of `pcn scheme new` passes its own test as it is written.
func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"rate", "window"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			stdout, stderr, code := run(t, "scheme", "new", "mine", "--kind", kind, "--dir", dir)
			qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
			r := runs(t, "mine", filepath.Join(dir, "mine.yaml"))
			qt.Check(t, qt.Equals(len(r.Flows), 2))

			_, stderr, code = run(t, "scheme", "new", "mine", "--dir", dir)
			qt.Check(t, qt.Equals(code, 1))
			qt.Check(t, qt.StringContains(stderr, "is there already"))
		})
	}
}

// A template's marking rule and notification point work with its control.
func TestTemplateParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{{"mine"}, {"late", "--kind", "marker"}, {"every", "--kind", "notification"}} {
		_, stderr, code := run(t, append([]string{"scheme", "new", "--dir", dir}, args...)...)
		qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	}
	file := filepath.Join(dir, "mine.c")
	source := string(read(t, file))
	for from, to := range map[string]string{
		`SCHEME("marker", "red")`:                                       `SCHEME("marker", "own ./late.h")`,
		`SCHEME("notification", "marked")`:                              `SCHEME("notification", "own ./every.c")`,
		`const struct red_params marker_params PREFIX("marking") = {};`: "#include \"late.h\"\nconst struct own_marker_params marker_params PREFIX(\"marking\") = {};",
		"const struct dcqcn_np_params np_params = {};": `struct every_params {
	u32 every PARAM("A CNP answers every so many marked packets", "1 to 1000", "7");
	u32 pad;
};
const struct every_params np_params = {};`,
	} {
		qt.Assert(t, qt.StringContains(source, from))
		source = strings.Replace(source, from, to, 1)
	}
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(source), 0o600)))
	r := runs(t, "mine", filepath.Join(dir, "mine.yaml"), "--duration", "10ms")
	for _, f := range r.Flows {
		every := float64(f.MarkedPackets) / float64(f.CNPDecrease)
		qt.Check(t, qt.IsTrue(every >= 7 && every < 8), qt.Commentf("%d marked, %d CNPs", f.MarkedPackets, f.CNPDecrease))
	}
}

// What is wrong with a control of one's own is told with its file and line.
func TestOwnMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, stderr, code := run(t, "scheme", "new", "mine", "--dir", dir)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	good := string(read(t, dir, "mine.c"))
	const line = "\tflow->state.cuts++;\n"
	for _, test := range []struct{ name, with, want string }{
		{"compiler", "\tflow->state.cut++;\n", `(?s).*mine\.c:\d+:\d+: error: no member named 'cut' .*`},
		{"verifier", "\t((u8 *)flow)[e->rec_rate_bps] = 1;\n",
			`(?s).*mine\.c:\d+: the kernel's verifier refuses the program: .*`},
		{"too long", "\tfor (u32 i = 0; i < 100000000; i++)\n" +
			"\t\tflow->state.pad += i ^ e->now_ns;\n",
			`(?s).*mine\.c:9[78]: the kernel's verifier .*hint: the verifier follows each turn .*`},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(dir, "mine.c")
			bad := strings.Replace(good, line, test.with, 1)
			qt.Assert(t, qt.IsTrue(bad != good))
			qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(bad), 0o600)))
			_, stderr, code := run(t, "run", "hol", "--algo", file, "--duration", "1ms", "--out", filepath.Join(t.TempDir(), "out"))
			qt.Check(t, qt.Equals(code, 1))
			qt.Check(t, qt.Matches(stderr, test.want))
		})
	}
	// kernels go on with 0 where the simulator stops
	divides := strings.Replace(good, onACK, onACK+
		"\tflow->state.rate_bps += flow->state.rate_bps / flow->state.pad;\n"+
		"\tflow->state.pad = flow->state.pad << (e->acked_bytes + 64);\n", 1)
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "mine.c"), []byte(divides), 0o600)))
	stdout, stderr, _ := run(t, "run", filepath.Join(dir, "mine.yaml"), "--duration", "2ms",
		"--out", filepath.Join(t.TempDir(), "out"))
	qt.Check(t, qt.Matches(stdout, `(?s).*warning: mine: mine\.c:87: a division by zero, .*`+
		`hint: test the divisor.*warning: mine: mine\.c:88: a shift .*hint: limit it.*`),
		qt.Commentf("%s", stderr))

	_, stderr, code = run(t, "scheme", "new", "pcn", "--dir", dir)
	qt.Check(t, qt.Equals(code, 2))
	qt.Check(t, qt.StringContains(stderr, "there is a scheme pcn already"))
}

// A control of one's own runs on a host, without a compiler there: its object is enough, and flows show
// what its algorithm keeps.
func TestOwnControlOnHost(t *testing.T) {
	dir := t.TempDir()
	nstest.Turn(t) // others look for what is left of them in the kernel
	for _, args := range [][]string{
		{"scheme", "new", "ownhost", "--dir", dir},
		{"scheme", "compile", filepath.Join(dir, "ownhost.c")},
		{"host", "up", "--control", filepath.Join(dir, "ownhost.o"), "--line-rate", "1Gbps"},
	} {
		stdout, stderr, code := run(t, args...)
		qt.Assert(t, qt.Equals(code, 0), qt.Commentf("pcn %q: %s%s", args, stdout, stderr))
	}
	t.Cleanup(func() {
		_, stderr, code := run(t, "host", "down")
		qt.Check(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	})
	connection := connectWith(t, "ownhost")
	_, err := connection.Write(make([]byte, 1<<20))
	qt.Assert(t, qt.IsNil(err))

	stdout, stderr, code := run(t, "flows", "--json")
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	qt.Check(t, qt.StringContains(stdout, `"control": "ownhost"`), qt.Commentf("%s", stdout))
	qt.Check(t, qt.StringContains(stdout, `"cuts": `), qt.Commentf("%s", stdout))
	stdout, stderr, code = run(t, "flows")
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	qt.Check(t, qt.StringContains(stdout, "CUTS"))
}

// connectWith connects to a listener of its own over the loopback device, whose receiver reads all.
func connectWith(t *testing.T, control string) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(io.Discard, c)
	}()
	dialer := net.Dialer{Control: socket.Choose(control)}
	c, err := dialer.Dial("tcp4", l.Addr().String())
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { c.Close() })
	return c
}
