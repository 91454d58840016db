// SPDX-License-Identifier: Apache-2.0

package doubt

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/config/scheme/compile"
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
	dir := t.TempDir()
	qt.Assert(t, qt.IsNil(os.CopyFS(dir, bpf.Headers)))
	replace(t, filepath.Join(dir, "include/rate_control.h"),
		"return plain_ssthresh(sk);", garbage,
		"return ((struct tcp_sock *)sk)->snd_cwnd;", garbage)
	source := filepath.Join(dir, name+".bpf.c")
	data, err := os.ReadFile("../../bpf/cc/pcn.bpf.c")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.WriteFile(source, data, 0o600)))
	replace(t, source, "#define CONTROL	      pcn\n", "#define CONTROL "+name+"\n")
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
