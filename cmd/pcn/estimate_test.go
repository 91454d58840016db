// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// terminal opens a pseudo-terminal, and types into it. read returns what was written to it.
func terminal(t *testing.T, typed string) (tty *os.File, read func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { master.Close() })
	qt.Assert(t, qt.IsNil(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	qt.Assert(t, qt.IsNil(err))
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { tty.Close() })
	_, err = master.WriteString(typed)
	qt.Assert(t, qt.IsNil(err))
	return tty, func() string {
		buf := make([]byte, 4096)
		n, err := master.Read(buf)
		qt.Assert(t, qt.IsNil(err))
		return strings.ReplaceAll(string(buf[:n]), "\r\n", "\n")
	}
}

// Long runs are announced, and confirmed on a terminal alone.
func TestConfirmLong(t *testing.T) {
	confirm := func(typed string, onTerminal, yes bool, cost time.Duration) (string, error) {
		cmd := &cobra.Command{}
		var out bytes.Buffer
		cmd.SetErr(&out)
		if onTerminal {
			tty, _ := terminal(t, typed)
			cmd.SetErr(tty)
			cmd.SetIn(tty)
		}
		err := confirmLong(cmd, 1, cost, yes)
		return out.String(), err
	}
	for _, tc := range []struct {
		typed           string
		onTerminal, yes bool
		cost            time.Duration
		refused         bool
	}{
		{"n\n", true, false, longRun, false}, // short
		{"n\n", true, false, 2 * longRun, true},
		{"y\n", true, false, 2 * longRun, false},
		{"\n", true, false, 2 * longRun, false},
		{"n\n", true, true, 2 * longRun, false},
		{"", false, false, 2 * longRun, false}, // CI
	} {
		_, err := confirm(tc.typed, tc.onTerminal, tc.yes, tc.cost)
		qt.Check(t, qt.Equals(err != nil, tc.refused), qt.Commentf("%+v: %v", tc, err))
	}
	text, _ := confirm("", false, false, 90*time.Minute)
	qt.Check(t, qt.Equals(text, "pcn: 1 runs take about 1h30m on 1 CPUs of this machine\n"))
	text, _ = confirm("", false, false, time.Minute)
	qt.Check(t, qt.Equals(text, ""))
}

func TestFormatAbout(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "1s", 41400 * time.Millisecond: "41s",
		190 * time.Second: "3m", 3601 * time.Second: "1h00m", 134 * time.Minute: "2h10m"} {
		qt.Check(t, qt.Equals(formatAbout(d), want))
	}
}

// Results have colours on a terminal, unless its user asked for none.
func TestColors(t *testing.T) {
	none := func(string) string { return "" }
	write := func(environ func(string) string, parts ...string) string {
		tty, read := terminal(t, "")
		w := newColored(tty, environ)
		for _, part := range parts {
			_, err := w.Write([]byte(part))
			qt.Assert(t, qt.IsNil(err))
		}
		if c, ok := w.(*colored); ok {
			qt.Assert(t, qt.IsNil(c.Close()))
		}
		return read()
	}
	qt.Check(t, qt.Equals(write(none, "ok  a\nNOT ", "MET  b ok  \n", "okay\nINVALID", ": c\nNOT"),
		"\x1b[32mok\x1b[0m  a\n\x1b[31mNOT MET\x1b[0m  b ok  \nokay\n"+
			"\x1b[31mINVALID:\x1b[0m c\nNOT"))
	for _, name := range []string{"NO_COLOR", "TERM"} {
		environ := func(asked string) string { return map[bool]string{true: "dumb"}[asked == name] }
		qt.Check(t, qt.Equals(write(environ, "ok  a\n"), "ok  a\n"))
	}
	var pipe bytes.Buffer
	qt.Check(t, qt.Equals(newColored(&pipe, none), io.Writer(&pipe)))
}

// list says what every experiment costs.
func TestListSaysTimes(t *testing.T) {
	all := printed[[]listed](t, 0, "list", "--json")
	qt.Assert(t, qt.HasLen(all, len(experiments.Names())))
	for _, e := range all {
		qt.Check(t, qt.IsTrue(e.KernelS > 3), qt.Commentf("%s: %v", e.Name, e))
		qt.Check(t, qt.IsTrue(e.SimS < e.KernelS))
	}
	out, _, err := pcn(t, "list")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(out, "hol                1      5m     8s"))
}

func TestSchemesAsJSON(t *testing.T) {
	all := printed[[]schemeJSON](t, 0, "scheme", "list", "--json")
	one := printed[schemeJSON](t, 0, "scheme", "show", "pcn", "--json")
	qt.Check(t, qt.IsTrue(len(all) > 5))
	qt.Check(t, qt.SliceContains(namesOf(all), "pcn"))
	qt.Assert(t, qt.IsTrue(len(one.Params) > 5))
	for _, p := range one.Params {
		qt.Check(t, qt.IsTrue(strings.HasPrefix(p.Key, "pcn.")))
		qt.Check(t, qt.Not(qt.Equals(p.Doc, "")))
	}
}

func namesOf(all []schemeJSON) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

func TestReproduceAsJSON(t *testing.T) {
	figures := printed[[]figureJSON](t, 0, "reproduce", "--list", "--json")
	qt.Check(t, qt.IsTrue(len(figures) > 20))
	claims := printed[[]claimJSON](t, exitExpect, "reproduce", "pcn-fig5", "--quick", "--json",
		"--out", filepath.Join(t.TempDir(), "out"))
	verdicts := map[string]int{}
	for _, c := range claims {
		verdicts[c.Verdict]++
		qt.Assert(t, qt.HasLen(c.Results, 1))
		qt.Check(t, qt.Equals(c.Results[0].Engine, "sim"))
		qt.Check(t, qt.Equals(c.Missed != "", c.Verdict == "not met"))
	}
	qt.Check(t, qt.IsTrue(verdicts["met"] > 0 && verdicts["not met"] > 0))
}

func TestSweepAsJSON(t *testing.T) {
	dir := t.TempDir()
	experiment := filepath.Join(dir, "small.yaml")
	file := filepath.Join(dir, "sweep.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(experiment, []byte(small), 0o600)))
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(`
name: few
title: Few runs
experiment: small.yaml
schemes: [pfc, pcn]
seeds: 1..2
metrics:
  - {name: lost, metric: lost_packets, bounds: {pcn: {min: 1}}}
  - {name: f0, metric: mean_rate, flows: [F0]}
`), 0o600)))
	s := printed[sweptJSON](t, exitExpect, "sweep", file, "--engine", "sim", "--json", "--out",
		filepath.Join(dir, "out"))
	qt.Check(t, qt.Equals(s.Sweep, "few"))
	qt.Check(t, qt.Equals(s.Runs, 4))
	qt.Check(t, qt.IsFalse(s.Pass))
	qt.Assert(t, qt.HasLen(s.Means, 4))
	qt.Check(t, qt.Equals(s.Means[0].Seeds, 2))
	qt.Check(t, qt.Equals(s.Means[1].Unit, "bps"))
	qt.Assert(t, qt.HasLen(s.Bounds, 1))
	qt.Check(t, qt.Equals(s.Bounds[0].Bound, "at least 1"))
	qt.Check(t, qt.HasLen(s.Not, 0))
}
