// SPDX-License-Identifier: Apache-2.0

// Package testbed runs the commands of docs/testbed.md as they stand there.
package testbed

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/docs/console"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

const page = "../../docs/testbed.md"

// step is a command of the document. text may have several lines.
type step struct {
	text  string
	needs string // what the kernel must have
}

// steps returns the document's commands. What they print is not compared.
func steps(t *testing.T) []step {
	t.Helper()
	data, err := os.ReadFile(page)
	qt.Assert(t, qt.IsNil(err))
	all, err := console.Parse(string(data))
	qt.Assert(t, qt.IsNil(err))
	var found []step
	for _, s := range all {
		if s.File == "" && s.AsRoot {
			found = append(found, step{s.Text, s.Needs})
		}
	}
	return found
}

// separator stands before what a step prints.
const separator = "==== step "

// script makes one shell script of the steps. It has /run/netns and the BPF file system for itself,
// and stops at the first step that fails.
func script(all []step) string {
	var b strings.Builder
	b.WriteString("mount -t tmpfs tmpfs /run/netns || exit\n" +
		"mount -t bpf bpf /sys/fs/bpf || exit\nset -e\n")
	for i, s := range all {
		b.WriteString("echo '" + separator + strconv.Itoa(i) + "'\n" + s.text + "\n")
	}
	return b.String()
}

// run runs the script and returns what each step printed.
func run(t *testing.T, all []step) []string {
	t.Helper()
	path := build(t) + ":" + os.Getenv("PATH")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // from when pcn is built
	defer cancel()
	qt.Assert(t, qt.IsNil(os.MkdirAll("/run/netns", 0o755)))
	// In a process namespace of their own, servers in the background end with the script.
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "--pid",
		"--fork", "--kill-child", "bash", "-c", script(all))
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "PATH="+path)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	qt.Assert(t, qt.IsNil(err))
	parts := strings.Split(string(out), separator)[1:]
	qt.Assert(t, qt.HasLen(parts, len(all)))
	return parts
}

// build builds pcn into a folder.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "pcn"),
		"github.com/pcn-linux/pcn/cmd/pcn").CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
	return dir
}

// outputs returns what the steps of a text printed.
func outputs(all []step, printed []string, text string) []string {
	var out []string
	for i, s := range all {
		if s.text == text {
			out = append(out, printed[i])
		}
	}
	return out
}

// sent matches a row of pcn flows, of a connection of one of the two senders: the sender, and the
// connection's control, marked packets, round trip and ECN.
var sent = regexp.MustCompile(`(?m)^(10\.0\.[12]\.2):\S+->10\.0\.3\.2:\S+ +` +
	`(\S+) .* (\d+)  +\d+  +\d+  +\d+  +(\S+) +(yes|NO)`)

// checkFlows checks that both senders' flows are marked and have a short queue.
func checkFlows(t *testing.T, text, control string) {
	t.Helper()
	marked := map[string]bool{} // iperf3's connection for its own messages may be marked too
	for _, row := range sent.FindAllStringSubmatch(text, -1) {
		qt.Check(t, qt.Equals(row[2], control))
		qt.Check(t, qt.Equals(row[5], "yes"))
		srtt, err := time.ParseDuration(row[4])
		qt.Check(t, qt.IsNil(err))
		// the queue without marks is 80 ms
		qt.Check(t, qt.IsTrue(srtt < 40*time.Millisecond), qt.Commentf("%s", row[0]))
		if n, _ := strconv.Atoi(row[3]); n > 0 {
			marked[row[1]] = true
		}
	}
	qt.Check(t, qt.HasLen(marked, 2), qt.Commentf("senders whose flows are marked"))
}

func TestCommandsOfTheDocument(t *testing.T) {
	nstest.RequireRoot(t)
	for _, tool := range []string{"iperf3", "ss", "tc", "nsenter", "unshare"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: apt-get install iperf3 iproute2 util-linux", tool)
		}
	}
	if err := loader.HaveTCX(); err != nil {
		t.Skip(err)
	}
	all := steps(t)
	qt.Assert(t, qt.IsTrue(len(all) > 25), qt.Commentf("%d commands", len(all)))
	if loader.HaveQdisc() != nil {
		all = withoutQdisc(all)
	}
	nstest.Turn(t)
	printed := run(t, all)

	flows := outputs(all, printed, "pcn flows")
	qt.Assert(t, qt.HasLen(flows, 2))
	checkFlows(t, flows[0], "pcn")
	checkFlows(t, flows[1], "ldcp")
	status := outputs(all, printed, "on router pcn host switch status")
	qt.Assert(t, qt.HasLen(status, 1))
	qt.Check(t, qt.Matches(strings.ReplaceAll(status[0], "\n", " "), `.* marked +[1-9].*`))
	qt.Check(t, qt.Matches(strings.ReplaceAll(status[0], "\n", " "), `.* superpackets +0 .*`))
	down := outputs(all, printed, "pcn host down --all")
	qt.Assert(t, qt.HasLen(down, 1))
	for _, component := range []string{"switch_to-r", "control_pcn", "control_ldcp"} {
		qt.Check(t, qt.StringContains(down[0], "removed  "+component))
	}
}

// withoutQdisc leaves out what this kernel can't do, but for the command that says so.
func withoutQdisc(all []step) []step {
	var out []step
	for _, s := range all {
		switch {
		case s.needs == "":
			out = append(out, s)
		case strings.Contains(s.text, "--npecn"):
			s.text += " 2>&1 | grep CONFIG_NET_SCH_BPF" // it says what is missing
			out = append(out, s)
		}
	}
	return out
}

// What the other test looks for is there.
func TestDocumentHasAllParts(t *testing.T) {
	all := steps(t)
	for _, want := range []string{
		"pcn flows", "pcn host down --all", "on router pcn host switch status",
	} {
		is := func(s step) bool { return s.text == want }
		qt.Check(t, qt.IsTrue(slices.ContainsFunc(all, is)), qt.Commentf("%s", want))
	}
	needs := slices.IndexFunc(all, func(s step) bool { return s.needs == "NET_SCH_BPF" })
	qt.Check(t, qt.IsTrue(needs > 0))
}
