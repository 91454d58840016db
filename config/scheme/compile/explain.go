// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/config/scheme"
)

// This file makes one message of what a compiler says about a mistake: the first error with its
// line of C, and what to do about it.

// advice says what to do about an error that a pattern matches. $where is the place that a note of
// the compiler's names.
var advice = []struct {
	pattern func() *regexp.Regexp
	hint    string
}{
	{lazy.Regexp(`built-in function '__\w*[sd]f\w*'`),
		"BPF has no floating-point numbers, not even 0.5: use integers, x * 3 / 2 for 1.5 x, or " +
			"a share of a type such as q24, with q24_scale (algo/fixed.h)"},
	{lazy.Regexp(`built-in function '__(mul|u?div|u?mod)ti`),
		"BPF has no integers of 128 bits: use u64"},
	{largeCopy, "a variable or the flow's state is too large to be cleared or copied at once: " +
		"make arrays smaller"},
	{lazy.Regexp(`unsupported signed division`),
		"BPF divides unsigned numbers only: divide u64, and set the sign after that"},
	{fullStack, "a program has 512 bytes of stack: keep arrays in the flow's state"},
	{lazy.Regexp(`libc-header-start|stdlib|'math.h'|'string.h'|'stdio.h'`),
		"BPF has no C library: remove the #include; include/control.h has the types"},
	{lazy.Regexp(`'(include|algo)/[^']*' file not found`),
		"PCN's headers are in algo/ and include/: see the #include lines of pcn scheme new"},
	{lazy.Regexp(`array index .* past the end`), "use an index below the array's size"},
	{lazy.Regexp(`division by zero|remainder by zero`), "test the divisor before"},
	{lazy.Regexp(`function '\w*(printf|puts|putchar|printk)'|'pr_(info|debug|err|warn)'`),
		cantPrint},
	{lazy.Regexp(`library function '(malloc|calloc|realloc|free|alloca)'`),
		"BPF has no heap: keep it in the flow's state"},
	{lazy.Regexp(`library function '(mem|str)\w+'`),
		"BPF has no C library: assign structs with =, or use __builtin_memcpy of a constant size"},
	{lazy.Regexp(`library function '(sqrt|cbrt|pow|exp|log|floor|ceil|round)\w*'`),
		"BPF has no floating-point numbers and no C library: write it for integers, as a loop " +
			"with a bound"},
	{lazy.Regexp(`library function`), "BPF has no C library"},
	{lazy.Regexp(`undeclared function '(rand|random|srand)'`),
		"a control's functions hold the flow's lock and can't ask for random numbers: derive one " +
			"from now_ns, as x * 6364136223846793005 + 1442695040888963407 does"},
	{lazy.Regexp(`undeclared function '(min|max|abs|clamp)'`),
		"write it out: a < b ? a : b"},
	{lazy.Regexp(`variable length array|variable-sized object|dynamic stack allocation`),
		"give the array a size that is a constant: a number, or a name by #define or enum"},
	{lazy.Regexp(`incompatible pointer types passing`), "it is declared so: $where"},
	{lazy.Regexp(`will not be visible`),
		"no header that the file includes defines this struct: correct its name"},
	{lazy.Regexp(`identifier '(nullptr|None|True|False|nil)'`), "C has NULL, true and false"},
	{lazy.Regexp(`identifier 'CONTROL\w*'`),
		"#define it before the last #include: the file that pcn scheme new writes does"},
	{lazy.Regexp(`'struct flow_entry'`),
		"struct flow_entry begins with FLOW_HEAD; and then has the fields that the file uses"},
	{lazy.Regexp(`provided to function-like macro`),
		"PARAM takes documentation, range, default; STAT documentation; SCHEME attribute, value: " +
			"algo/param.h, include/scheme.h"},
	{lazy.Regexp(`did you mean to use '->'`), "it is a pointer: write -> for the dot"},
	{lazy.Regexp(`unsigned expression`),
		"unsigned numbers are never below 0: compare them before one is subtracted"},
	{lazy.Regexp(`used as|is '?\d+'?; did you mean '1`),
		"^ is not a power: write 1 << 10 for 2^10"},
	{lazy.Regexp(`logical not is only`), "write a != b, or !(a == b)"},
	{lazy.Regexp(`lower precedence`), "put parentheses around what belongs together"},
	{lazy.Regexp(`has empty body`), "remove the ; behind the condition"},
	{lazy.Regexp(`result unused`), "assign it: x = x + 1, not x + 1 or x == 1"},
	{lazy.Regexp(`overflow in expression`),
		"make one number 64 bits wide: 8ull * 1000000000"},
	{lazy.Regexp(`changes value from|out of range value`),
		"choose a type that is large enough, such as u64"},
	{lazy.Regexp(`type specifier missing`),
		"write the type before the name, such as u64; auto is not one in C"},
	{lazy.Regexp(`unknown type name '[us](8|16|32|64)'`),
		`#include "include/control.h" has to be the first`},
	{lazy.Regexp(`unknown type name 'u?int(8|16|32|64)?_t'`),
		"the types of integers are u8, u16, u32, u64 and s8 to s64"},
	{lazy.Regexp(`undeclared function '(time|clock|gettimeofday|clock_gettime|ktime_\w+)'`),
		"now_ns() is the time, and e->now_ns that of an ACK or a CNP"},
	{lazy.Regexp(`(suffix '|error: .*)[^\x00-\x7f]|unexpected character`),
		"C is written in ASCII: type the character again"},
	{lazy.Regexp(`arguments to function call`), "it is declared so: $where"},
	{lazy.Regexp(`redefinition of`), "choose another name: $where has this one"},
	{lazy.Regexp(`const-qualified type`),
		"parameters and events can't be changed: keep what changes in the flow's state"},
	{lazy.Regexp(`incompatible .*(pointer|integer)`),
		"a pointer is no number: take a field of it, p->field, or what it points to, *p"},
	{lazy.Regexp(`function definition is not allowed here`),
		"a function above it lacks its last }"},
	{unterminated, "a ) is missing at the end of it"},
	{lazy.Regexp(`non-void function`), "end it with return and a value"},
	{lazy.Regexp(`uninitialized|garbage|is undefined$`),
		"give it a value where it is declared: = 0, or = {} for a struct or an array"},
	{lazy.Regexp(`shift count`),
		"shift a u64 by less than 64, and a number such as 1 by less than 32: (u64)1 << 40"},
	{lazy.Regexp(`result of an assignment as a condition`), "== compares, = assigns"},
	{lazy.Regexp(`calls itself|infinite recursion`), noRecursion},
	{lazy.Regexp(`undeclared function|undeclared identifier|no member named`),
		"correct the name; include/control.h has what a control can use, and include/marker.h " +
			"what a marking rule can"},
	{lazy.Regexp(`: error: expected`), "look at the end of what is before it, too"},
	{lazy.Regexp(``), "correct this line; the file that pcn scheme new writes compiles"},
}

// What two findings have in common.
const (
	cantPrint = "a control can't print: a field of its state with STAT(...) is a column of " +
		"flows.csv"
	noRecursion = "write it as a loop with a bound"
)

// Errors that the compiler has no line of the user's for, and one that it reports after others.
var (
	largeCopy    = lazy.Regexp(`built-in function 'mem(set|cpy|move)'`)
	fullStack    = lazy.Regexp(`stack limit is exceeded`)
	unterminated = lazy.Regexp(`(?m)^\S+: error: unterminated function-like macro`)
	incomplete   = lazy.Regexp(`incomplete (?:definition of )?type '[^']*struct (\w+)'`)
	noMember     = lazy.Regexp(`no member named '(\w+)' in 'struct (\w+)'`)
	event        = lazy.Regexp(`(?ms)^struct (\w+_event|notification) \{\n(.*?)^\}`)
	member       = lazy.Regexp(`(?m)^\t\w[^;{]*?\b(\w+)(?: : \d+)?;`)
	// A function of the user's that has another type than its callers expect.
	declaredAmiss = lazy.Regexp(`conflicting types for|will not be visible`)
	noted         = lazy.Regexp(`(?m)^(\S+:\d+):\d+: note: `)
)

// operations are what headers call in a user's file.
const operations = `control_\w+|line_rate_bps|own_mark|own_feedback|notify_\w+`

var (
	isError    = lazy.Regexp(`^.+?:\d+:\d+: (fatal )?error: `)
	notDefined = lazy.Regexp(`undeclared function '(` + operations + `)'|` +
		`function '(` + operations + `)' has internal linkage but is not defined`)
	called     = lazy.Regexp(`\b(` + operations + `)\(`)
	ownStruct  = lazy.Regexp(`incomplete .*'struct (own_marker\w*)'`)
	redefined  = lazy.Regexp(`^redefinition of`)
	name       = lazy.Regexp(`identifier '(\w+)'`)
	ofAWarning = lazy.Regexp(` \[(-W|core\.)[^\]]*\]$`)
	otherISO   = "; ISO C99 and later do not support implicit function declarations"
	elsewhere  = lazy.Regexp(`: (note|warning): |^In file included from `)
	unhelpful  = lazy.Regexp(`(?m)^<scratch space>|expanded from (here|macro)`)
)

// explain returns the first error of a compiler's output, with its line of C and a hint. In a
// header of PCN's it is what the user's file lacks.
func (c *compiler) explain(path, says string) string {
	says = strings.ReplaceAll(says, c.dir+"/", "")
	if at := unterminated().FindStringIndex(says); at != nil {
		says = says[at[0]:] // what is before it follows from it
	}
	kept := firstError(says)
	if len(kept) == 0 {
		return says
	}
	hint := ""
	if m := inHeader().FindStringSubmatch(kept[0]); m != nil {
		var text string
		text, hint = ofHeader(path, says, m[2], kept)
		kept = []string{text}
	}
	text := strings.TrimRight(generated().ReplaceAllString(strings.Join(kept, "\n"), ""), "\n")
	if hint == "" {
		hint = hintOf(path, text, says)
	}
	return text + "\n(hint: " + hint + ")"
}

// firstError returns the lines of a compiler's first error.
func firstError(says string) (kept []string) {
	count := 0
	for _, line := range strings.Split(says, "\n") {
		if isError().MatchString(line) {
			count++
		}
		switch {
		case count != 1, unhelpful().MatchString(line):
			continue // warnings and #include lines before it, and what follows from it
		case len(kept) > 0 && elsewhere().MatchString(line):
			count++ // what follows says where else to look
			continue
		}
		line = strings.Replace(line, otherISO, "", 1)
		kept = append(kept, ofAWarning().ReplaceAllString(line, ""))
	}
	return kept
}

// ofHeader returns an error in a header of PCN's as one of the user's file, and a hint; "" if none
// is known. kept are the error's lines, and text is what is wrong.
func ofHeader(path, says, text string, kept []string) (string, string) {
	if m := notDefined().FindStringSubmatch(text); m != nil {
		return placeOf(path, says, text) + "error: " + m[1] + m[2] + " is not defined",
			"add " + signatureOf(path, m[1]+m[2])
	}
	if m := called().FindStringSubmatch(strings.Join(kept[1:], "\n")); m != nil {
		if place := lineWith(path, `(?m)^\w[^;{}=]*\b`+m[1]+`\(`); strings.Contains(place, ":") {
			return fmt.Sprintf("%s: error: %s has the wrong type: %s", place, m[1], text),
				"declare it so: " + signatureOf(path, m[1])
		}
	}
	if m := ownStruct().FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s: error: struct %s is not defined", filepath.Base(path), m[1]),
			"define it, with at least one field: include/marker.h says what a marking rule has"
	}
	if m := noted().FindStringSubmatch(says); m != nil && redefined().MatchString(text) &&
		strings.HasSuffix(m[1][:strings.LastIndex(m[1], ":")], filepath.Base(path)) {
		return m[1] + ": error: " + text,
			"choose another name: " + inHeader().FindStringSubmatch(kept[0])[1] + " has this one"
	}
	if m := name().FindStringSubmatch(text); m != nil {
		place := lineWith(path, `\b`+m[1]+`\b`)
		if strings.Contains(place, ":") {
			return place + ": error: " + text, ""
		}
	}
	return placeOf(path, says, text) + "error: " + text, ""
}

// placeOf returns where in the user's file an error of a header comes from, as it begins a message.
func placeOf(path, says, text string) string {
	if at := lostPlace().FindStringSubmatch(says); at != nil && !strings.Contains(at[1], "/") {
		return at[1] + ": "
	}
	if largeCopy().MatchString(text) || fullStack().MatchString(text) {
		if line := largestArray(path); line > 0 {
			return fmt.Sprintf("%s:%d: ", filepath.Base(path), line)
		}
	}
	includedFrom := regexp.MustCompile(`(?m)^In file included from (\S*` +
		regexp.QuoteMeta(filepath.Base(path)) + `:\d+):`)
	if from := includedFrom.FindStringSubmatch(says); from != nil {
		return from[1] + ": "
	}
	if of := program().FindStringSubmatch(says); of != nil {
		return of[1] + ": "
	}
	return ""
}

// hintOf says what to do about an error. says has the compiler's notes on it.
func hintOf(path, text, says string) string {
	if m := incomplete().FindStringSubmatch(text); m != nil {
		if header := headerOf(path, m[1]); header != "" {
			return fmt.Sprintf("#include %q defines it", header)
		}
	}
	if m := noMember().FindStringSubmatch(text); m != nil {
		if hint := memberHint(m[1], m[2]); hint != "" {
			return hint
		}
	}
	if m := called().FindStringSubmatch(text); m != nil && declaredAmiss().MatchString(text) {
		return "declare it so: " + signatureOf(path, m[1])
	}
	for _, a := range advice {
		if !a.pattern().MatchString(text) {
			continue
		}
		where := "above"
		if m := noted().FindStringSubmatch(says); m != nil {
			where = strings.TrimPrefix(m[1], "bpf/")
		}
		return strings.ReplaceAll(a.hint, "$where", where)
	}
	return "" // the last advice is for all
}

// headerOf returns the header that defines a struct, of PCN's or beside the user's file; "" if none
// does.
func headerOf(path, name string) (header string) {
	defines := regexp.MustCompile(`(?m)^struct ` + name + ` \{`)
	search := func(headers fs.FS) {
		_ = fs.WalkDir(headers, ".", func(file string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".h" {
				return nil
			}
			if text, err := fs.ReadFile(headers, file); err == nil && defines.Match(text) {
				header = file
			}
			return nil
		})
	}
	search(bpf.Headers)
	for _, file := range headersBeside(path) {
		if text, err := os.ReadFile(file); err == nil && defines.Match(text) {
			header = filepath.Base(file)
		}
	}
	return header
}

// headersBeside returns the user's headers in the folder of a file.
func headersBeside(path string) []string {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.h")) // the pattern is right
	return files
}

// events are the structs that headers hand to a user's functions, with their members.
var events = sync.OnceValue(func() map[string][]string {
	members := map[string][]string{}
	headers, _ := fs.Glob(bpf.Headers, "include/*.h") // fails for bad patterns only
	for _, file := range headers {
		text, err := fs.ReadFile(bpf.Headers, file)
		if err != nil {
			panic(err) // it is embedded
		}
		for _, m := range event().FindAllStringSubmatch(string(text), -1) {
			for _, field := range member().FindAllStringSubmatch(m[2], -1) {
				members[m[1]] = append(members[m[1]], field[1])
			}
		}
	}
	return members
})

// memberHint says which members an event has, or which event has such a member.
func memberHint(name, of string) string {
	members := events()
	if members[of] == nil {
		return ""
	}
	hint := fmt.Sprintf("struct %s has %s", of, strings.Join(members[of], ", "))
	for _, other := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(members[other], name) {
			hint += fmt.Sprintf("; struct %s has %s", other, name)
		}
	}
	return hint
}

// arrayOf is an array of a type with a size in its name, or of another.
var arrayOf = lazy.Regexp(`^\s.*?\b(?:[us](8|16|32|64)|\w+) \w+\[(\d+)\]`)

// largestArray returns the line of the largest array in a file; 0 if there is none.
func largestArray(path string) (line int) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	most := 0
	for i, code := range strings.Split(string(text), "\n") {
		m := arrayOf().FindStringSubmatch(code)
		if m == nil {
			continue
		}
		bits, err := strconv.Atoi(m[1])
		if err != nil {
			bits = 64
		}
		if count, err := strconv.Atoi(m[2]); err == nil && bits*count > most {
			most, line = bits*count, i+1
		}
	}
	return line
}

var (
	inHeader = lazy.Regexp(`^(?:bpf/)?((?:include|algo|kernel|simulator|/usr/include)/\S+?:\d+)` +
		`:\d+: (?:fatal )?error: (.*)`)
	// The generator of code knows the user's file by its name alone.
	lostPlace = lazy.Regexp(`not determine the original source location for (\S+:\d+:\d+)`)
	// What a macro of a header names, or a function of one.
	program = lazy.Regexp(`(?m)^ +\d+ \| (?:static \w+ \w+ )?(\w+)(?:\(struct .*)?$`)
)

// quoted are the words that an error quotes, ofKey the parameter that it is about, and ofName its
// name in C.
var (
	quoted = lazy.Regexp(`"([\w.]+)"`)
	ofKey  = lazy.Regexp(`of (\w+):`)
	ofName = lazy.Regexp(`\w+\.(\w+): `)
)

// described is an error of what a control's file says of itself, with its line and a hint.
func described(path string, object *scheme.Object, err error) error {
	text := fmt.Errorf("%s: %w", lineOf(path, err), err)
	if object != nil {
		text = fmt.Errorf("%s: control %s: %w", lineOf(path, err), object.Control, err)
	}
	if strings.Contains(err.Error(), "hint: ") {
		return text
	}
	if errors.Is(err, scheme.ErrNoControl) {
		return fmt.Errorf("%w\n(hint: include/rate_control.h or include/window_control.h defines "+
			"it: #include it at the end, as the file that pcn scheme new writes does)", text)
	}
	return fmt.Errorf("%w\n(hint: algo/param.h explains PARAM and STAT, include/scheme.h explains "+
		"SCHEME: pcn docs own-control)", text)
}

// lineOf returns the file with the line that describes what an error is about; the file alone if
// that is not known.
func lineOf(path string, err error) string {
	for _, file := range append([]string{path}, headersBeside(path)...) {
		if line := describedAt(file, err); line > 0 {
			return fmt.Sprintf("%s:%d", file, line)
		}
	}
	return path
}

// describedAt returns the line of a file that describes what an error is about; 0 if none does.
func describedAt(file string, err error) int {
	data, readErr := os.ReadFile(file)
	if readErr != nil {
		return 0
	}
	lines := strings.Split(string(data), "\n")
	for _, about := range []struct {
		words func() *regexp.Regexp
		line  string
	}{
		{ofName, `\b%s (PARAM|KEY|STAT|FROM)\(`},
		{ofKey, `\b%s(_[a-z0-9]+)? (PARAM|STAT|FROM)\(`}, {quoted, `(PARAM|SCHEME).*\b%s\b`},
	} {
		for _, m := range about.words().FindAllStringSubmatch(err.Error(), -1) {
			described := regexp.MustCompile(fmt.Sprintf(about.line, regexp.QuoteMeta(m[1])))
			if i := slices.IndexFunc(lines, described.MatchString); i >= 0 {
				return i + 1
			}
		}
	}
	return 0
}

// generated is the count of errors that ends a compiler's output.
var generated = lazy.Regexp(`(?m)^(\d+ warnings? and )?\d+ errors? generated\.$`)

// signatureOf returns how a template declares a function that the user's file has to define.
func signatureOf(path, name string) string {
	declared := regexp.MustCompile(`(?m)^static [^\n]*\b` + name + `\([^)]*\)`)
	files := []string{"rate.c", "window.c", "mark.h", "np.c"}
	if text, err := os.ReadFile(path); err == nil &&
		bytes.Contains(text, []byte("window_control.h")) {
		files[0], files[1] = files[1], files[0]
	}
	for _, file := range files {
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
