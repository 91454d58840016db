// SPDX-License-Identifier: Apache-2.0

// Package goal reads GOAL schedules in text form, as LogGOPSim's txt2bin and ATLAHS read them: for
// each rank operations, and which of them wait for which.
package goal

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/config"
)

// Kind is what an operation does.
type Kind string

// The kinds.
const (
	Send Kind = "send"
	Recv Kind = "recv"
	Calc Kind = "calc"
)

// Op is an operation of a rank.
type Op struct {
	Kind  Kind
	Bytes uint64 // of a message
	Ns    int64  // of a calc
	Peer  int    // rank at the other end of a message
	Tag   uint64
	Line  int

	After  []int // operations of the rank that must be over before this begins
	Beside []int // operations of the rank that must have begun
}

// Schedule has the operations of each rank.
type Schedule struct {
	Ranks [][]Op
}

// maxRanks keeps a typing error from taking all memory.
const maxRanks = 1 << 16

// Is reports whether a text looks like a schedule: its first words are num_ranks and a number.
func Is(text string) bool {
	words := tokens(text[:min(len(text), 4096)])
	return len(words) > 0 && words[0].text == "num_ranks"
}

// Parse reads a schedule. An error is an [*config.Error].
func Parse(text string) (*Schedule, error) {
	p := &parser{words: tokens(text)}
	if err := p.schedule(); err != nil {
		return nil, err
	}
	return &p.out, nil
}

type token struct {
	text string
	line int
}

// tokens splits a text into words, and the signs ":", "{" and "}". It leaves out comments: from
// "//" or "#" to the end of the line, and from "/*" to "*/".
func tokens(text string) []token {
	var all []token
	line := 1
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "//"), text[0] == '#':
			text = text[indexOr(text, "\n", len(text)):]
		case strings.HasPrefix(text, "/*"):
			end := min(indexOr(text[2:], "*/", len(text))+4, len(text))
			line += strings.Count(text[:end], "\n")
			text = text[end:]
		case text[0] == '\n':
			line++
			text = text[1:]
		case strings.ContainsRune(" \t\r,;", rune(text[0])):
			text = text[1:]
		case strings.ContainsRune(":{}", rune(text[0])):
			all = append(all, token{text[:1], line})
			text = text[1:]
		default:
			end := strings.IndexAny(text, " \t\r\n,;:{}#/")
			if end < 1 { // also a "/" that begins no comment
				end = max(1, indexOr(text, "\n", len(text)))
			}
			all = append(all, token{text[:end], line})
			text = text[end:]
		}
	}
	return all
}

func indexOr(text, part string, none int) int {
	if i := strings.Index(text, part); i >= 0 {
		return i
	}
	return none
}

type parser struct {
	words []token
	at    int
	out   Schedule
}

func (p *parser) line() int {
	if len(p.words) == 0 {
		return 1
	}
	return p.words[min(p.at, len(p.words)-1)].line
}

// failAt returns an error of a line.
func failAt(line int, format string, args ...any) error {
	return &config.Error{Line: line, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) fail(format string, args ...any) error {
	return failAt(p.line(), format, args...)
}

// peek returns the word that is n ahead; "" behind the end.
func (p *parser) peek(n int) string {
	if p.at+n >= len(p.words) {
		return ""
	}
	return p.words[p.at+n].text
}

// is takes a word if it is the next.
func (p *parser) is(word string) bool {
	if p.peek(0) != word {
		return false
	}
	p.at++
	return true
}

func (p *parser) need(word string) error {
	if p.is(word) {
		return nil
	}
	return p.fail("found %q: want %q", p.peek(0), word)
}

// number takes a number, whose unit may stand behind it.
func (p *parser) number(what, unit string) (uint64, error) {
	text := p.peek(0)
	digits := text
	if unit != "" {
		digits = strings.TrimSuffix(strings.ToLower(text), unit)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if text == "-1" {
		return 0, p.fail("%s -1, which is any: want one, as a run does not choose", what)
	}
	if err != nil || n > math.MaxInt64 {
		return 0, p.fail("%s %q: want a number", what, text)
	}
	p.at++
	return n, nil
}

func (p *parser) schedule() error {
	if err := p.need("num_ranks"); err != nil {
		return err
	}
	n, err := p.number("num_ranks", "")
	switch {
	case err != nil:
		return err
	case n == 0 || n > maxRanks:
		p.at--
		return p.fail("num_ranks %d: want 1 to %d", n, maxRanks)
	}
	p.out.Ranks = make([][]Op, n)
	seen := make([]bool, n)
	for p.at < len(p.words) {
		if err := p.need("rank"); err != nil {
			return err
		}
		r, err := p.number("rank", "")
		switch {
		case err != nil:
			return err
		case r >= n || seen[r]:
			p.at--
			return p.fail("rank %d: want each of 0 to %d once", r, n-1)
		}
		seen[r] = true
		if p.out.Ranks[r], err = p.rank(n); err != nil {
			return err
		}
	}
	return nil
}

// reference is a dependency between labels, which may stand before them.
type reference struct {
	from, to token
	beside   bool
}

func (p *parser) rank(ranks uint64) ([]Op, error) {
	if err := p.need("{"); err != nil {
		return nil, err
	}
	var ops []Op
	var references []reference
	labels := map[string]int{}
	for !p.is("}") {
		switch {
		case p.at >= len(p.words):
			return nil, p.fail("the rank does not end: want \"}\"")
		case p.peek(1) == "requires" || p.peek(1) == "irequires":
			if p.peek(2) == "" {
				return nil, p.fail("%s %s what? want a label", p.peek(0), p.peek(1))
			}
			references = append(references, reference{p.words[p.at], p.words[p.at+2],
				p.peek(1) == "irequires"})
			p.at += 3
			continue
		case p.peek(1) == ":":
			if _, ok := labels[p.peek(0)]; ok {
				return nil, p.fail("label %s: the rank has two of it", p.peek(0))
			}
			labels[p.peek(0)] = len(ops)
			p.at += 2
		}
		op, err := p.op(ranks)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	for _, r := range references {
		if err := r.resolve(ops, labels); err != nil {
			return nil, err
		}
	}
	return ops, nil
}

func (r reference) resolve(ops []Op, labels map[string]int) error {
	from, ok1 := labels[r.from.text]
	to, ok2 := labels[r.to.text]
	switch {
	case !ok1:
		return failAt(r.from.line, "the rank has no label %s", r.from.text)
	case !ok2:
		return failAt(r.to.line, "the rank has no label %s", r.to.text)
	case r.beside:
		ops[from].Beside = append(ops[from].Beside, to)
	default:
		ops[from].After = append(ops[from].After, to)
	}
	return nil
}

func (p *parser) op(ranks uint64) (Op, error) {
	op := Op{Kind: Kind(p.peek(0)), Line: p.line()}
	way := map[Kind]string{Send: "to", Recv: "from", Calc: ""}
	word, ok := way[op.Kind]
	if !ok {
		return op, p.fail("found %q: want send, recv, calc, a label, or \"}\"", op.Kind)
	}
	p.at++
	if op.Kind == Calc {
		ns, err := p.number("calc", "ns")
		op.Ns = int64(ns)
		if err != nil {
			return op, err
		}
		return op, p.attributes(&op)
	}
	var err error
	if op.Bytes, err = p.number("size", "b"); err != nil {
		return op, err
	}
	if err := p.need(word); err != nil {
		return op, err
	}
	peer, err := p.number("rank", "")
	switch {
	case err != nil:
		return op, err
	case peer >= ranks:
		p.at--
		return op, p.fail("rank %d: want 0 to %d", peer, ranks-1)
	}
	op.Peer = int(peer)
	return op, p.attributes(&op)
}

// attributes takes what may stand behind an operation. Of cpu and nic nothing follows here.
func (p *parser) attributes(op *Op) error {
	for {
		word := p.peek(0)
		if word != "tag" && word != "cpu" && word != "nic" || p.peek(1) == ":" {
			return nil
		}
		p.at++
		n, err := p.number(word, "")
		if err != nil {
			return err
		}
		if word == "tag" {
			op.Tag = n
		}
	}
}
