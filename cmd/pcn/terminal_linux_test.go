// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal, and types into it. read closes it, and returns all that was
// written to it.
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
		qt.Assert(t, qt.IsNil(tty.Close()))
		text, err := io.ReadAll(master) // what is written comes in pieces; the end is an error
		qt.Assert(t, qt.ErrorIs(err, unix.EIO))
		return strings.ReplaceAll(string(text), "\r\n", "\n")
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
