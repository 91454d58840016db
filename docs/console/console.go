// SPDX-License-Identifier: Apache-2.0

// Package console reads the commands of a document, so that tests can run them. A document is one
// session: its commands run in their order, in one folder.
//
// A block of commands says after its "console" what it needs:
//
//	```console fast             runs in CI
//	```console minutes          runs, but takes minutes: a nightly target
//	```console root             runs as root in a network namespace of its own: a nightly target
//	```console hardware         needs what CI lacks, such as a switch or a cluster
//	```console edits            needs changes of a file that the text describes
//	```console tested=FOLDER    the tests in FOLDER run it
//
// A command of the first two prints the lines that stand below it, but for seconds by the clock and
// the kernel's name.
//
// Further words: exit=3 is the exit code of the block's last command, needs=X is what the kernel
// must have. A block "```yaml file=my.yaml" is a file of the session, and so is a comment
// "<!-- file=my.yaml" up to "-->".
package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Class says what a command needs.
type Class string

// The classes of commands.
const (
	Fast     Class = "fast"
	Minutes  Class = "minutes"
	Root     Class = "root"
	Hardware Class = "hardware"
	Edits    Class = "edits"
	Tested   Class = "tested"
)

var classes = []Class{Fast, Minutes, Root, Hardware, Edits, Tested}

// Step is a command of a session, or a file to write.
type Step struct {
	Line    int    // in the document, from 1
	File    string // to write Text to; empty for a command
	Text    string // may have several lines
	Class   Class
	By      string   // of class Tested: the folder of the tests
	Needs   string   // what the kernel must have
	Exit    int      // the expected exit code
	AsRoot  bool     // the prompt is "# "
	Printed []string // the lines below the command
}

// Parse returns the steps of a document. It fails if a block of commands has no class.
func Parse(text string) ([]Step, error) {
	p := &parser{}
	for i, line := range strings.Split(text, "\n") {
		p.line = i + 1
		if err := p.next(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	if p.state != outside {
		return nil, fmt.Errorf("line %d: the block has no end", p.line)
	}
	return p.steps, nil
}

type state int

const (
	outside state = iota
	commands
	inFile
	inComment // a file within a comment
	other     // a block of something else
)

type parser struct {
	state state
	line  int
	block Step // what the block's first line says
	first int  // the block's first step
	here  bool // within a here-document, or behind a backslash
	steps []Step
}

func (p *parser) next(line string) error {
	fence := strings.HasPrefix(strings.TrimSpace(line), "```")
	switch {
	case p.state == outside && strings.HasPrefix(line, "<!-- file="):
		p.beginFile(strings.TrimPrefix(line, "<!-- file="), inComment)
	case p.state == outside && fence:
		return p.begin(strings.Fields(strings.Trim(line, " `")))
	case p.state == outside:
	case p.state == inComment && line == "-->", p.state != inComment && fence && !p.here:
		p.end()
	case p.state == inFile || p.state == inComment:
		p.steps[len(p.steps)-1].Text += line + "\n"
	case p.state == commands:
		p.command(line)
	}
	return nil
}

func (p *parser) begin(info []string) error {
	p.state, p.first = other, len(p.steps)
	if len(info) > 1 && strings.HasPrefix(info[1], "file=") {
		p.beginFile(strings.TrimPrefix(info[1], "file="), inFile)
		return nil
	}
	if len(info) == 0 || info[0] != "console" {
		return nil
	}
	p.state, p.block = commands, Step{}
	for _, word := range info[1:] {
		if err := p.block.describe(word); err != nil {
			return err
		}
	}
	if p.block.Class == "" {
		return fmt.Errorf("a block of commands says not what it needs: "+
			"want ```console and one of %v, with =FOLDER for tested", classes)
	}
	return nil
}

// describe takes over a word of a block's first line.
func (s *Step) describe(word string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	switch {
	case slices.Contains(classes, Class(key)):
		s.Class, s.By = Class(key), value
	case key == "needs":
		s.Needs = value
	case key == "exit":
		s.Exit, err = strconv.Atoi(value)
	default:
		return fmt.Errorf("unknown word %q: want one of %v, needs=X or exit=N", word, classes)
	}
	return err
}

func (p *parser) beginFile(name string, s state) {
	p.state = s
	p.steps = append(p.steps, Step{Line: p.line, File: name})
}

func (p *parser) end() {
	if p.state == commands && len(p.steps) > p.first {
		p.steps[len(p.steps)-1].Exit = p.block.Exit
	}
	p.state = outside
}

// command reads a line of a block: a prompt begins a command, and other lines are printed by it.
func (p *parser) command(line string) {
	if p.here {
		last := &p.steps[len(p.steps)-1]
		last.Text += "\n" + line
		document := strings.Contains(last.Text, "<<END")
		p.here = document && line != "END" || !document && strings.HasSuffix(line, "\\")
		return
	}
	for _, prompt := range []string{"$ ", "# "} {
		text, ok := strings.CutPrefix(line, prompt)
		if !ok {
			continue
		}
		s := p.block
		s.Line, s.Text, s.AsRoot, s.Exit = p.line, text, prompt == "# ", 0
		p.steps = append(p.steps, s)
		p.here = strings.HasSuffix(text, "<<END") || strings.HasSuffix(text, "\\")
		return
	}
	if len(p.steps) > p.first {
		last := &p.steps[len(p.steps)-1]
		last.Printed = append(last.Printed, line)
	}
}
