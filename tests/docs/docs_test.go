// SPDX-License-Identifier: Apache-2.0

// Package docs runs the commands of the documents as they stand there, with the program that make
// build made. Package console says what the words behind "console" mean.
//
// In CI it runs the fast ones. PCN_DOCS=minutes (make test-docs) also runs those that take minutes;
// PCN_DOCS=root (make test-docs-root) runs those that need root, in namespaces of their own.
package docs

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/docs/console"
)

const root = "../.."

// limits bound one command of each class: a CI machine is slower than ours.
var limits = map[console.Class]time.Duration{
	console.Fast: 2 * time.Minute, console.Minutes: time.Hour, console.Root: 30 * time.Minute,
}

// documents returns the paths of all documents with commands.
func documents(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CONTRIBUTING.md", "KNOWN_ISSUES.md"}
	err := filepath.WalkDir(root+"/docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") {
			return err
		}
		name, err := filepath.Rel(root, path)
		found = append(found, name)
		return err
	})
	qt.Assert(t, qt.IsNil(err))
	return found
}

func parse(t *testing.T, name string) []console.Step {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	qt.Assert(t, qt.IsNil(err))
	steps, err := console.Parse(string(text))
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", name))
	return steps
}

// Every command of every document has a class, and what others are said to test is there.
func TestEveryCommandHasAClass(t *testing.T) {
	count := map[console.Class]int{}
	for _, name := range documents(t) {
		for _, s := range parse(t, name) {
			count[s.Class]++
			if s.Class != console.Tested {
				continue
			}
			_, err := os.Stat(filepath.Join(root, s.By))
			qt.Check(t, qt.IsNil(err), qt.Commentf("%s:%d: tested by nothing", name, s.Line))
		}
	}
	t.Logf("commands by class (none: files): %v", count)
	qt.Check(t, qt.IsTrue(count[console.Fast] > 20))
}

// The commands of each document run in their order, in a folder of their own.
func TestCommands(t *testing.T) {
	wanted := []console.Class{console.Fast}
	switch mode := os.Getenv("PCN_DOCS"); mode {
	case "":
	case "minutes":
		wanted = append(wanted, console.Minutes)
	case "root":
		wanted = []console.Class{console.Root}
	default:
		t.Fatalf("invalid PCN_DOCS=%s: want minutes, root or nothing", mode)
	}
	for _, name := range documents(t) {
		steps := parse(t, name)
		isWanted := func(s console.Step) bool {
			return s.File == "" && slices.Contains(wanted, s.Class)
		}
		if !slices.ContainsFunc(steps, isWanted) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			if wanted[0] == console.Root {
				s.doAsRoot(t, name, slices.DeleteFunc(steps, func(s console.Step) bool {
					return !isWanted(s)
				}))
				return
			}
			for _, step := range steps {
				if step.File != "" || isWanted(step) {
					s.do(t, name, step)
				}
			}
		})
	}
}

// session is the folder in which the commands of a document run. It has what documents name of the
// repository: the program, and experiments.
type session struct{ dir, root string }

func newSession(t *testing.T) session {
	t.Helper()
	repository, err := filepath.Abs(root)
	qt.Assert(t, qt.IsNil(err))
	_, err = os.Stat(filepath.Join(repository, "bin/pcn"))
	qt.Assert(t, qt.IsNil(err), qt.Commentf("run make build first"))
	dir := t.TempDir()
	for _, name := range []string{"bin", "netns-lab"} {
		err := os.Symlink(filepath.Join(repository, name), filepath.Join(dir, name))
		qt.Assert(t, qt.IsNil(err))
	}
	return session{dir, repository}
}

// do runs a command, and holds what it prints against what stands below it.
func (s session) do(t *testing.T, name string, step console.Step) {
	t.Helper()
	if step.File != "" {
		file := filepath.Join(s.dir, step.File)
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(step.Text), 0o600)))
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), limits[step.Class])
	defer cancel()
	c := s.command(ctx, step)
	out, err := c.CombinedOutput()
	t.Logf("%s:%d: %s\n%s", name, step.Line, step.Text, out)
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatalf("%s:%d: %v", name, step.Line, err)
	}
	qt.Assert(t, qt.Equals(c.ProcessState.ExitCode(), step.Exit),
		qt.Commentf("%s:%d: %s\n%s", name, step.Line, step.Text, out))
	if step.Class == console.Fast {
		compare(t, name, step, out)
	}
}

// command returns the command as a shell runs it.
func (s session) command(ctx context.Context, step console.Step) *exec.Cmd {
	c := exec.CommandContext(ctx, "bash", "-c", "cd "+s.folder(step)+"\n"+step.Text)
	s.prepare(c)
	return c
}

// folder returns where a command runs: what builds or tests, in the repository.
func (s session) folder(step console.Step) string {
	for _, prefix := range []string{"make ", "go ", "scripts/", "bin/soak"} {
		if strings.HasPrefix(step.Text, prefix) {
			return s.root
		}
	}
	return s.dir
}

func (s session) prepare(c *exec.Cmd) {
	c.Env = append(os.Environ(), "PATH="+filepath.Join(s.root, "bin")+":"+os.Getenv("PATH"))
	c.WaitDelay = 5 * time.Second
}

// doAsRoot runs the commands of a document in one set of namespaces, up to the first that fails.
func (s session) doAsRoot(t *testing.T, name string, steps []console.Step) {
	t.Helper()
	script := machine
	for _, step := range steps {
		script += "cd " + s.folder(step) + "\n" + step.Text + "\n"
	}
	ctx, cancel := context.WithTimeout(t.Context(), limits[console.Root])
	defer cancel()
	c := exec.CommandContext(ctx, "unshare", "--net", "--mount", "--pid", "--fork",
		"--mount-proc", "--kill-child", "bash", "-xc", script)
	s.prepare(c)
	out, err := c.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s:\n%s", name, out))
}

// machine makes a network namespace look like the host of the documents.
const machine = `set -e
mount -t bpf bpf /sys/fs/bpf
ip link set lo up
for i in 0 1; do
	ip link add eth$i type veth peer name peer$i
	ip addr add 10.0.$i.1/24 dev eth$i
	ip link set eth$i up
	ip link set peer$i up
done
`

// compare fails if a line that the document shows is not in the output. "..." stands for any lines.
func compare(t *testing.T, name string, step console.Step, out []byte) {
	t.Helper()
	var printed []string
	for line := range bytes.Lines(out) {
		printed = append(printed, strings.TrimRight(string(line), " \n"))
	}
	for _, line := range step.Printed {
		line = strings.TrimRight(line, " ")
		qt.Check(t, qt.IsTrue(line == "..." || slices.Contains(printed, line)),
			qt.Commentf("%s:%d: %s did not print this line:\n%s", name, step.Line, step.Text, line))
	}
}
