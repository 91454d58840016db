// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/config/scheme"
)

// sourceLine is how the verifier names a line of C: "; x = y; @ mine.c:42".
var sourceLine = lazy.Regexp(`^; (.*) @ (\S+:\d+)$`)

// ExplainVerifier adds the line of C source and the reason to an error of the kernel's verifier. It
// returns other errors unchanged.
func ExplainVerifier(err error) error {
	var refused *ebpf.VerifierError
	if !errors.As(err, &refused) {
		return err
	}
	where, code, reason := complaint(refused.Log)
	if reason == "" {
		return err
	}
	hint := verifierHint(reason)
	if where == "" {
		return fmt.Errorf("the kernel's verifier refuses the program: %s: %w%s", reason,
			refused.Cause, hint)
	}
	if code != "" {
		hint = "\n\t" + code + hint
	}
	return fmt.Errorf("%s: the kernel's verifier refuses the program: %s: %w%s", where, reason,
		refused.Cause, hint)
}

// verifierHints say what to do about a reason of the verifier's, by what it contains. Older kernels
// say the same in fewer words.
var verifierHints = []struct{ words, hint string }{
	{endlessLoop, "give the loop a bound that is a constant: for (u32 i = 0; i < 16; i++)"},
	{"too large. Processed", "the verifier follows each turn of a loop, and each call of a " +
		"function by itself: give it a smaller bound"},
	{"lock region", scheme.LockHint},
	{"bpf_spin_lock cannot", "the address is that of another struct: take a field of the " +
		"flow's state by its name"},
	{"cannot prove offset", boundIndex},
	{"memory access", boundIndex},
	{"invalid access to map value", boundIndex},
	{"scalar", "only a pointer that the kernel handed out can be followed"},
	{"may be NULL", "compare the pointer with NULL before it is followed"},
	{"without an exit", "clang left out code that reads what has no value: give each variable, " +
		"field and element one before it is read"},
	{"or_null", "compare the pointer with NULL before it is followed"},
	{"stack", "a program has 512 bytes of stack: keep arrays in the flow's state"},
}

const (
	endlessLoop = "infinite loop detected"
	boundIndex  = "limit the index before it is used: i & (SIZE - 1), or if (i < SIZE)"
)

// verifierHint returns what to do about a reason, on a line of its own; "" if that is not known.
func verifierHint(reason string) string {
	for _, h := range verifierHints {
		if strings.Contains(reason, h.words) {
			return "\n(hint: " + h.hint + ")"
		}
	}
	return ""
}

// complaint finds the last line of C in a verifier log, and what the kernel says about it: its
// section "Reason:", or else the last message.
func complaint(log []string) (where, code, reason string) {
	log, report := splitReport(log)
	for _, line := range log {
		line = strings.TrimSpace(line)
		if m := sourceLine().FindStringSubmatch(line); m != nil {
			code, where = m[1], m[2]
			continue
		}
		if line != "" && !isStatistic(line) && !strings.HasPrefix(reason, endlessLoop) {
			reason = line // of a loop, the states that follow say nothing
		}
	}
	if told := section(report, "Reason:"); told != "" {
		reason = told
	}
	return where, code, reason
}

// splitReport separates a log from the report that Linux 7.3 and later write at its end.
func splitReport(log []string) (rest, report []string) {
	i := slices.IndexFunc(log, func(line string) bool {
		return strings.HasPrefix(line, "Verification failed:")
	})
	if i < 0 {
		return log, nil
	}
	return log[:i], log[i:]
}

// section returns the text of a report's section, of which the lines are indented.
func section(report []string, title string) string {
	i := slices.Index(report, title)
	if i < 0 {
		return ""
	}
	var text []string
	for _, line := range report[i+1:] {
		if !strings.HasPrefix(line, " ") {
			break
		}
		text = append(text, strings.TrimSpace(line))
	}
	return strings.TrimSuffix(strings.Join(text, " "), ".")
}

// isStatistic reports whether a line is one of those that end every log.
func isStatistic(line string) bool {
	for _, prefix := range []string{"processed ", "verification time ", "stack depth ",
		"peak_states", "max_states"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}
