// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// longRun is the time from which on pcn says beforehand how long runs take, and asks.
const longRun = 3 * time.Minute

const yesHelp = "do not ask before runs that take more than 3 minutes"

// confirmLong says how long runs take that cost this much time of one CPU, if that is long. On a
// terminal it asks whether to go on, unless yes is set.
func confirmLong(cmd *cobra.Command, runs int, cost time.Duration, yes bool) error {
	cpus := max(min(runs, runtime.NumCPU()), 1)
	wall := cost / time.Duration(cpus)
	if wall <= longRun {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "pcn: %d runs take about %s on %d CPUs of this machine\n", runs,
		formatAbout(wall), cpus)
	if yes || !isTerminal(cmd.ErrOrStderr()) {
		return nil
	}
	agreed, isAsked := ask(cmd, "Go on? [Y/n] ", true)
	if isAsked && !agreed {
		return errors.New("nothing was run (hint: --duration and --algo make it shorter, " +
			"--engine sim takes seconds)")
	}
	return nil
}

// ask asks a question on a terminal. Another answer than y or n is the one by default. It reports
// false if the input is no terminal.
func ask(cmd *cobra.Command, question string, byDefault bool) (agreed, isAsked bool) {
	if !isTerminal(cmd.InOrStdin()) {
		return false, false
	}
	fmt.Fprint(cmd.ErrOrStderr(), question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil {
		return false, true
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, true
	case "n", "no":
		return false, true
	default:
		return byDefault, true
	}
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	if c, ok := stream.(*colored); ok {
		stream = c.Writer
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// formatAbout writes a time as short as an estimate deserves: 40s, 7m, 2h10m.
func formatAbout(d time.Duration) string {
	switch {
	case d < time.Second:
		return "1s"
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Round(time.Minute).Minutes()))
	default:
		d = d.Round(10 * time.Minute)
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// colored writes lines to a terminal, those that say "ok" in green and those that do not in red.
type colored struct {
	io.Writer
	start []byte // of the line, until it is clear whether it has a colour
	known bool   // it is
}

// Colours are those that terminals have since long ago.
const (
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

// words are what lines start with that have a colour.
var words = []struct{ text, color string }{
	{"ok  ", green}, {"NOT MET  ", red}, {"INVALID: ", red}, {"FAIL  ", red},
}

// newColored returns the writer, with colours if it is a terminal whose user has nothing against
// them (https://no-color.org).
func newColored(w io.Writer, environ func(string) string) io.Writer {
	if !isTerminal(w) || environ("NO_COLOR") != "" || environ("TERM") == "dumb" {
		return w
	}
	return &colored{Writer: w}
}

// Write implements [io.Writer].
func (c *colored) Write(p []byte) (int, error) {
	var out []byte
	for _, b := range p {
		if c.known {
			out = append(out, b)
			c.known = b != '\n'
			continue
		}
		c.start = append(c.start, b)
		out = append(out, c.decide(b == '\n')...)
	}
	if _, err := c.Writer.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// decide returns the start of the line once it is clear whether it has a colour.
func (c *colored) decide(ends bool) []byte {
	line := string(c.start)
	for _, w := range words {
		if line == w.text {
			trimmed := strings.TrimRight(w.text, " ")
			c.start, c.known = nil, true
			return []byte(w.color + trimmed + plain + w.text[len(trimmed):])
		}
		if strings.HasPrefix(w.text, line) && !ends {
			return nil
		}
	}
	c.start, c.known = nil, !ends
	return []byte(line)
}

// Close writes what is left of a line without an end.
func (c *colored) Close() error {
	_, err := c.Writer.Write(c.start)
	c.start = nil
	return err
}
