// SPDX-License-Identifier: Apache-2.0

package hpcc

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/config"
)

// Largest values accepted, far beyond what can be run.
const (
	maxNodes     = 1 << 20
	maxCount     = 1 << 24
	maxBytes     = 1 << 50
	maxBaseUnits = 1 << 50 // bit/s or ns
)

// reader reads the words of a file. After the first error it reads nothing more.
type reader struct {
	words []word
	last  int // line of the last word
	err   *config.Error
}

// others are files of the same simulators that are neither topologies nor flows, by how their first
// word begins.
var others = []struct{ begins, hint string }{
	{"ENABLE_", configHint}, {"enable", configHint}, {"TOPOLOGY_FILE", configHint},
	{"FLOW_FILE", configHint},
	{"HYBRID_", "this is a workload of SimAI: write a collective: in its place, as " +
		"pcn docs collectives shows"},
}

const configHint = "this is a configuration: write its settings into the experiment, as " +
	"pcn docs from-ns3 shows"

// notOther fails if the file is one of another kind.
func (r *reader) notOther() {
	for _, o := range others {
		if len(r.words) > 0 && strings.HasPrefix(r.words[0].text, o.begins) {
			r.last = r.words[0].line
			r.fail("%q begins no topology and no list of flows: %s", r.words[0].text, o.hint)
		}
	}
}

type word struct {
	text string
	line int
}

func newReader(text string) *reader {
	r := &reader{last: 1}
	line := 0
	for l := range strings.Lines(text) {
		line++
		for w := range strings.FieldsSeq(l) {
			r.words = append(r.words, word{w, line})
		}
	}
	return r
}

// fail records an error at the last word read. Only the first error is kept.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &config.Error{Line: r.last, Msg: fmt.Sprintf(format, args...)}
	}
}

// error returns the first error. A nil *config.Error in an error interface would not be nil.
func (r *reader) error() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// next returns the next word, or "" after an error; what names the expected word in errors.
func (r *reader) next(what string) string {
	if r.err != nil {
		return ""
	}
	if len(r.words) == 0 {
		r.fail("the file ends, want %s", what)
		return ""
	}
	w := r.words[0]
	r.words, r.last = r.words[1:], w.line
	return w.text
}

// onFirstLine returns how many words the first line with words has.
func (r *reader) onFirstLine() int {
	n := 0
	for n < len(r.words) && r.words[n].line == r.words[0].line {
		n++
	}
	return n
}

// noMore fails if a line follows that has numbers like those read so far: the count was too small.
// Files end with remarks, which are let alone.
func (r *reader) noMore(what string, count int) {
	if line := r.more(); line > 0 {
		r.last = line
		r.fail("there is one %s more than the %d that the file says", what, count)
	}
}

// more returns the next line if it has numbers like those read so far; 0 if it has none.
func (r *reader) more() int {
	if r.err != nil || len(r.words) == 0 {
		return 0
	}
	const like = 2 // numbers that a remark does not begin with
	for i := range min(like, len(r.words)) {
		if _, err := strconv.Atoi(r.words[i].text); err != nil {
			return 0
		}
	}
	return r.words[0].line
}

// integer reads a number from 0 to limit.
func (r *reader) integer(what string, limit int) int {
	text := r.next(what)
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > limit {
		r.fail("%q is not %s: want a whole number from 0 to %d", text, what, limit)
		return 0
	}
	return n
}

type unit struct {
	name  string
	scale float64 // in base units
}

// Units of ns-3, whose base units are bit/s and ns. A number without a unit has the first one.
var (
	rateUnits = []unit{
		{"bps", 1}, {"kbps", 1e3}, {"Kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}, {"Tbps", 1e12},
		{"b/s", 1}, {"kb/s", 1e3}, {"Kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}, {"Tb/s", 1e12},
	}
	timeUnits = []unit{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}
)

// quantity reads a number with a unit, rounded to whole base units.
func (r *reader) quantity(what string, units []unit) uint64 {
	text := r.next(what)
	split := strings.LastIndexAny(text, "0123456789.") + 1
	n, err := strconv.ParseFloat(text[:split], 64)
	scale, ok := scaleOf(text[split:], units)
	n = math.Round(n * scale)
	if err != nil || !ok || !(n >= 0 && n <= maxBaseUnits) {
		r.fail("%q is not %s", text, what)
		return 0
	}
	return uint64(n)
}

func scaleOf(name string, units []unit) (float64, bool) {
	if name == "" {
		return units[0].scale, true
	}
	for _, u := range units {
		if u.name == name {
			return u.scale, true
		}
	}
	return 0, false
}
