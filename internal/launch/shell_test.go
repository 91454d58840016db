// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
)

const shellNetwork = `name: shell
topology: {kind: star, hosts: 2, rate: 100Mbps, delay: 1ms}
schemes: [cubic]
switch: {pfc: {off: true}, port_buffer: 500KB}
duration: 1s
warmup: 0ms
sample: 10ms
captures: [H1]
`

func shellIn(t *testing.T, s Shell) (said string, status int, captures map[string][]byte) {
	t.Helper()
	e, err := experiment.ParseWith("shell.yaml", []byte(shellNetwork),
		experiment.Options{Idle: true})
	qt.Assert(t, qt.IsNil(err))
	engine, err := shared()
	qt.Assert(t, qt.IsNil(err))
	var out bytes.Buffer
	s.Out, s.Limit = &out, time.Minute
	status, captures, err = engine.Shell(t.Context(), job.Job{Experiment: e, Scheme: "cubic"}, s)
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", &out))
	return out.String(), status, captures
}

// A session does the same, to the byte, whether its lines are a script, a script beside a busy CPU,
// or come while somebody thinks: time goes on by what they do alone.
func TestShell(t *testing.T) {
	need(t, "ping")
	lines := []string{
		"date +%s.%N", "wait 10ms", "# nothing", "date +%s.%N", "R0> (sleep 0.5; echo behind) &",
		"H1> ping -c 2 R0", "H0>", "hostname", "printf half", "exit", "echo never",
	}
	script, status, captures := shellIn(t, Shell{Script: lines})
	qt.Check(t, qt.Equals(status, 0))
	qt.Check(t, qt.StringContains(script, "2 packets transmitted, 2 received"))
	qt.Check(t, qt.StringContains(script, "\nbehind\n"))
	qt.Check(t, qt.StringContains(script, "H0> hostname\nH0\n"))
	const h1 = "captures/H1.pcapng"
	qt.Check(t, qt.IsTrue(len(captures[h1]) > 500))
	qt.Check(t, qt.IsFalse(strings.Contains(script, "never")))

	busy(t)
	again, _, againCaptures := shellIn(t, Shell{Script: lines})
	qt.Check(t, qt.Equals(again, script))
	qt.Check(t, qt.IsTrue(bytes.Equal(againCaptures[h1], captures[h1])))

	var prompts []string
	typed, status, typedCaptures := shellIn(t, Shell{Ask: func(prompt string) (string, error) {
		prompts = append(prompts, prompt)
		time.Sleep(20 * time.Millisecond) // somebody thinks
		return lines[len(prompts)-1], nil
	}})
	qt.Check(t, qt.Equals(status, 0))
	qt.Check(t, qt.DeepEquals(prompts, []string{
		"H0> ", "H0> ", "H0> ", "H0> ", "H0> ", "R0> ", "H1> ", "H0> ", "H0> ", "H0> ",
	}))
	echo := regexp.MustCompile(`(?m)^(H0|H1|R0)> .*\n`) // of a script's lines
	said := strings.TrimSuffix(echo.ReplaceAllString(script, ""), "H0> exit\n")
	qt.Check(t, qt.Equals(typed, said))
	qt.Check(t, qt.IsTrue(bytes.Equal(typedCaptures[h1], captures[h1])))
}

// A script ends with its first line that fails, which is the exit status.
func TestShellFails(t *testing.T) {
	for _, c := range []struct {
		line   string
		status int
		says   string
	}{
		{"sh -c 'exit 3'", 3, ""},
		{"H7> true", 2, "pcn: no host H7: hosts are H0 to R0\n"},
		{"wait long", 2, "pcn: wait long: want a time, such as 10ms\n"},
		{"sleep 100", 128 + 2, "pcn: sleep 100: it ran for 1m0s, and is ended\n"},
	} {
		said, status, _ := shellIn(t, Shell{Script: []string{"true", c.line, "echo never"}})
		qt.Check(t, qt.Equals(status, c.status))
		qt.Check(t, qt.StringContains(said, "H0> true\n"))
		qt.Check(t, qt.StringContains(said, fmt.Sprintf(
			"\n%sline 2 of the script ended with status %d\n", c.says, c.status)))
		qt.Check(t, qt.IsFalse(strings.Contains(said, "never")))
	}
	e, err := experiment.Parse("shell.yaml", []byte(shellNetwork+
		"flows: [{name: F0, from: H0, to: R0}]\n"))
	qt.Assert(t, qt.IsNil(err))
	engine, err := NewMicroVMs("", false)
	qt.Assert(t, qt.IsNil(err))
	_, _, err = engine.Shell(t.Context(), job.Job{Experiment: e, Scheme: "cubic"}, Shell{})
	qt.Check(t, qt.ErrorMatches(err, "(?s).*a shell has no flows and no bursts: remove them .*"))
}
