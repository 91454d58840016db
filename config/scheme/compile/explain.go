// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/bpf"
)

// This file makes one message of what a compiler says about a mistake: the first error with its
// line of C, and what to do about it.

// advice says what to do about an error that a pattern matches.
var advice = []struct {
	pattern *regexp.Regexp
	hint    string
}{
	{regexp.MustCompile(`built-in function '__\w*[sd]f\w*'`),
		"BPF has no floating-point numbers, not even 0.5: use integers, x * 3 / 2 for 1.5 x, or " +
			"a share of a type such as q24, with q24_scale (algo/fixed.h)"},
	{regexp.MustCompile(`built-in function '__(mul|u?div|u?mod)ti`),
		"BPF has no integers of 128 bits: use u64"},
	{regexp.MustCompile(`built-in function 'mem(set|cpy|move)'`),
		"a variable or the flow's state is too large to be cleared or copied at once: make " +
			"arrays smaller"},
	{regexp.MustCompile(`unsupported signed division`),
		"BPF divides unsigned numbers only: divide u64, and set the sign after that"},
	{regexp.MustCompile(`stack limit is exceeded`),
		"a program has 512 bytes of stack: keep arrays in the flow's state"},
	{regexp.MustCompile(`libc-header-start|stdlib|'math.h'|'string.h'|'stdio.h'`),
		"BPF has no C library: remove the #include; include/control.h has the types"},
	{regexp.MustCompile(`'(include|algo)/[^']*' file not found`),
		"PCN's headers are in algo/ and include/: see the #include lines of pcn scheme new"},
	{regexp.MustCompile(`array index .* past the end`), "use an index below the array's size"},
	{regexp.MustCompile(`division by zero|remainder by zero`), "test the divisor before"},
	{regexp.MustCompile(`undeclared function|undeclared identifier|no member named`),
		"correct the name; include/control.h has what a control can use"},
}

var (
	isError    = regexp.MustCompile(`^(\S+?):\d+:\d+: (fatal )?error: `)
	notDefined = regexp.MustCompile(`undeclared function '(control_\w+|line_rate_bps)'`)
	ofAWarning = regexp.MustCompile(` \[-W[^\]]*\]$`)
	otherISO   = "; ISO C99 and later do not support implicit function declarations"
	unhelpful  = regexp.MustCompile(`(?m)^<scratch space>|expanded from (here|macro)`)
)

// explain returns the first error of a compiler's output, with its line of C and a hint. In a
// header of PCN's it is what the user's file lacks.
func (c *compiler) explain(says string) string {
	says = strings.ReplaceAll(says, c.dir+"/", "")
	if m := notDefined.FindStringSubmatch(says); m != nil {
		return fmt.Sprintf("error: %s is not defined\n(hint: add %s)", m[1], signatureOf(m[1]))
	}
	var kept []string
	errors := 0
	for _, line := range strings.Split(says, "\n") {
		if isError.MatchString(line) {
			errors++
		}
		switch {
		case errors != 1, unhelpful.MatchString(line):
			continue // warnings and #include lines before it, and what follows from it
		case strings.Contains(line, ": note: ") && len(kept) > 0:
			errors++ // the notes only say where else to look
			continue
		}
		line = strings.Replace(line, otherISO, "", 1)
		kept = append(kept, ofAWarning.ReplaceAllString(line, ""))
	}
	if len(kept) == 0 {
		return says
	}
	if m := inHeader.FindStringSubmatch(kept[0]); m != nil {
		kept = []string{"error: " + m[1]} // no line of the user's
		if at := lostPlace.FindStringSubmatch(says); at != nil && !strings.Contains(at[1], "/") {
			kept[0] = at[1] + ": " + kept[0]
		} else if of := program.FindStringSubmatch(says); of != nil {
			kept[0] = of[1] + ": " + kept[0]
		}
	}
	text := strings.TrimRight(generated.ReplaceAllString(strings.Join(kept, "\n"), ""), "\n")
	for _, a := range advice {
		if a.pattern.MatchString(text) {
			return text + "\n(hint: " + a.hint + ")"
		}
	}
	return text
}

var (
	inHeader = regexp.MustCompile(`^bpf/\S+: (?:fatal )?error: (.*)`)
	// The generator of code knows the user's file by its name alone.
	lostPlace = regexp.MustCompile(`not determine the original source location for (\S+:\d+:\d+)`)
	// What a macro of a header names, or a function of one.
	program = regexp.MustCompile(`(?m)^ +\d+ \| (?:static \w+ \w+ )?(\w+)(?:\(struct .*)?$`)
)

// quoted are the words that an error quotes, and ofKey the parameter that it is about.
var (
	quoted = regexp.MustCompile(`"([\w.]+)"`)
	ofKey  = regexp.MustCompile(`of (\w+):`)
)

// lineOf returns the file with the line that describes what an error is about; the file alone if
// that is not known.
func lineOf(path string, err error) string {
	data, readErr := os.ReadFile(path)
	if readErr != nil {
		return path
	}
	lines := strings.Split(string(data), "\n")
	for _, about := range []struct {
		words *regexp.Regexp
		line  string
	}{
		{ofKey, `\b%s(_[a-z0-9]+)? (PARAM|STAT|FROM)\(`}, {quoted, `(PARAM|SCHEME).*\b%s\b`},
	} {
		for _, m := range about.words.FindAllStringSubmatch(err.Error(), -1) {
			described := regexp.MustCompile(fmt.Sprintf(about.line, regexp.QuoteMeta(m[1])))
			if i := slices.IndexFunc(lines, described.MatchString); i >= 0 {
				return fmt.Sprintf("%s:%d", path, i+1)
			}
		}
	}
	return path
}

// generated is the count of errors that ends a compiler's output.
var generated = regexp.MustCompile(`(?m)^\d+ errors? generated\.$`)

// signatureOf returns how a template declares a function that controls have to define.
func signatureOf(name string) string {
	declared := regexp.MustCompile(`(?m)^static [^\n]*\b` + name + `\([^)]*\)`)
	for _, file := range []string{"rate.c", "window.c"} {
		text, err := fs.ReadFile(bpf.Templates, "templates/"+file)
		if err != nil {
			continue
		}
		if found := declared.Find(text); found != nil {
			return strings.Join(strings.Fields(string(found)), " ")
		}
	}
	return name
}
