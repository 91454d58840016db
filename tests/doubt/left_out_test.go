// SPDX-License-Identifier: Apache-2.0

package doubt

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/config/scheme/compile"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// A kernel may leave out a control's programs, and takes what a register held for their answer
// (KNOWN_ISSUES.md). Here ssthresh and undo_cwnd of pcn always answer so.
func TestAnswersLeftOut(t *testing.T) {
	const name = "pcn_left_out"
	c := registeredScheme(t, leftOut(t, name), 0)
	b := newBed(t, tailDrop/8) // a window that does not fit is lost at once
	b.points(t, c)
	asGoodAsCUBIC(t, b, name, name, 2*time.Second)
}

// leftOut compiles pcn, under another name, with such answers.
func leftOut(t *testing.T, name string) scheme.Scheme {
	t.Helper()
	const garbage = "return 0x88812345;"
	return changed(t, pcnSource(name), func(headers, _ string) {
		replace(t, filepath.Join(headers, "include/operations.h"),
			"return plain_ssthresh(sk);", garbage,
			"return ((struct tcp_sock *)sk)->snd_cwnd;", garbage)
	})
}

// The same of init, at both ends: the flow begins with its first ACK or packet, and then goes by
// its control. Otherwise it would keep its first window for life.
func TestInitLeftOut(t *testing.T) {
	for _, test := range []struct {
		source   controlSource
		init     string // where it is; empty: in operations.h
		receives bool   // the receiver keeps an entry too
	}{
		{pcnSource("left"), "", false},
		{ldcpSource("left"), "", true},
		{dctcpSource("left"), "BPF_PROG(pcn_dctcp_init", true},
	} {
		t.Run(test.source.file, func(t *testing.T) {
			control := registeredScheme(t, changed(t, test.source, func(headers, source string) {
				if test.init == "" {
					source = filepath.Join(headers, "include/operations.h")
				}
				init := cmp.Or(test.init, "CONTROL_PROG(PROGRAM(init)")
				begin := "void " + init + ", struct sock *sk)\n{\n"
				replace(t, source, begin, begin+"\treturn;\n")
			}), 0)
			b := newBed(t, tailDrop)
			b.mark(t)
			if control.Hears() == "cnp" {
				b.points(t, control)
			}
			f := b.connect(t, control.Name(), control.Name(), 0, 0)
			_, err := control.Flow(f.key(t))
			qt.Assert(t, qt.ErrorIs(err, loader.ErrNoFlow))
			f.sending(t)
			// A busy machine may lose packets before the first mark: a doubt, which marks end.
			var flow loader.Flow
			if !nstest.InTime(nstest.Patience, func() bool {
				flow, err = control.Flow(f.key(t))
				return err == nil && flow.Packets > 100 && flow.MarkedPackets > 0 &&
					flow.Doubt == ""
			}) {
				t.Fatalf("the flow does not go by its control: %+v, error %v", flow, err)
			}
			if test.receives {
				flows, err := control.Flows()
				qt.Assert(t, qt.IsNil(err))
				qt.Check(t, qt.HasLen(flows, 2))
			}
		})
	}
}

// controlSource is a control to compile under another name.
type controlSource struct {
	file, name string
	rename     []string // texts of its file, and what takes their place
}

func pcnSource(name string) controlSource {
	return controlSource{"pcn", name,
		[]string{"#define CONTROL	      pcn\n", "#define CONTROL " + name + "\n"}}
}

func ldcpSource(name string) controlSource {
	return controlSource{"ldcp", name, []string{"#define CONTROL	   ldcp\n",
		"#define CONTROL " + name + "\n"}}
}

func dctcpSource(name string) controlSource {
	return controlSource{"dctcp", name,
		[]string{`"pcn_dctcp",`, `"` + name + `",`, `"dctcp")`, `"` + name + `")`}}
}

// changed compiles a control from sources that change has edited.
func changed(
	t *testing.T, c controlSource, change func(headers, source string),
) scheme.Scheme {
	t.Helper()
	dir := t.TempDir()
	qt.Assert(t, qt.IsNil(os.CopyFS(dir, bpf.Headers)))
	source := filepath.Join(dir, c.name+".bpf.c")
	data, err := os.ReadFile("../../bpf/cc/" + c.file + ".bpf.c")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.WriteFile(source, data, 0o600)))
	replace(t, source, c.rename...)
	change(dir, source)
	own, err := compile.Scheme(t.Context(), source, compile.Sources{})
	qt.Assert(t, qt.IsNil(err))
	_, s, err := scheme.Builtin().With(own)
	qt.Assert(t, qt.IsNil(err))
	return s
}

// replace replaces texts that a file has once each.
func replace(t *testing.T, path string, oldAndNew ...string) {
	t.Helper()
	data, err := os.ReadFile(path)
	qt.Assert(t, qt.IsNil(err))
	for i := 0; i < len(oldAndNew); i += 2 {
		old, replacement := []byte(oldAndNew[i]), []byte(oldAndNew[i+1])
		qt.Assert(t, qt.Equals(bytes.Count(data, old), 1), qt.Commentf("%s", old))
		data = bytes.Replace(data, old, replacement, 1)
	}
	qt.Assert(t, qt.IsNil(os.WriteFile(path, data, 0o600)))
}
