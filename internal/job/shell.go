// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"strings"
	"time"
)

// Shell is a session of commands on the hosts of a network.
type Shell struct {
	// Script is its lines. If it is nil they come one by one, as files in the folder Inbox of the
	// host: 0, 1 and on. [LatestLine] is a link to the last that is there, or to [EndOfLines].
	Script []string
	Inbox  string
	// Limit is for how long a command may run, in virtual time.
	Limit time.Duration
}

// ShellFile is where the host puts the Shell.
const ShellFile = "/shell.json"

// Names in Inbox.
const (
	LatestLine = "latest"
	NoLine     = "none" // where LatestLine leads to before the first
	EndOfLines = "end"  // where it leads to at the end of the session
)

// ShellEvent is what a session says on the guest's console, a line each: the event, and a text.
type ShellEvent string

// The events.
const (
	ShellOutput ShellEvent = "shell-output" // a line of a command's output
	ShellPart   ShellEvent = "shell-part"   // the same, without a new line at its end
	ShellPrompt ShellEvent = "shell-prompt" // the session waits for a line; the text is the host
	ShellEnd    ShellEvent = "shell-end"    // the exit status of the session
)

// Line returns the event's line.
func (e ShellEvent) Line(text string) string { return fmt.Sprintf("%s %s", e, text) }

// ParseShellEvent reads a line of the console; ok is false if it is no event.
func ParseShellEvent(line string) (e ShellEvent, text string, ok bool) {
	name, text, _ := strings.Cut(line, " ")
	switch e = ShellEvent(name); e {
	case ShellOutput, ShellPart, ShellPrompt, ShellEnd:
		return e, text, true
	}
	return "", "", false
}
