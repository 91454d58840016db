// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// sourceLine is how the verifier names a line of C: "; x = y; @ mine.c:42".
var sourceLine = regexp.MustCompile(`^; (.*) @ (\S+:\d+)$`)

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
	if where == "" {
		return fmt.Errorf("the kernel's verifier refuses the program: %s: %w", reason,
			refused.Cause)
	}
	return fmt.Errorf("%s: the kernel's verifier refuses the program: %s: %w\n\t%s", where, reason,
		refused.Cause, code)
}

// complaint finds the last line of C in a verifier log, and what the kernel says about it: its
// section "Reason:", or else the last message.
func complaint(log []string) (where, code, reason string) {
	log, report := splitReport(log)
	for _, line := range log {
		line = strings.TrimSpace(line)
		if m := sourceLine.FindStringSubmatch(line); m != nil {
			code, where = m[1], m[2]
			continue
		}
		if line != "" && !isStatistic(line) {
			reason = line
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
