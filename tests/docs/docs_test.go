// SPDX-License-Identifier: Apache-2.0

// Package docs runs the commands of the documents as they stand there, with the program that make
// build made. Package console says what the words behind "console" mean.
//
// In CI it runs the fast ones. PCN_DOCS=minutes (make test-docs) also runs those that take minutes;
// PCN_DOCS=root (make test-docs-root) runs those that need root, in namespaces of their own.
package docs

import (
	"context"
	"errors"
	"io/fs"
	"math"
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
)

const root = "../.."

// limits bound one command of each class: a CI machine is slower than ours.
var limits = map[console.Class]time.Duration{
	console.Fast: 10 * time.Minute, console.Minutes: time.Hour, console.Root: 30 * time.Minute,
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
	for _, name := range []string{"bin", "internal", "netns-lab"} {
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
	compare(t, name, step, out)
	text, err := os.ReadFile(filepath.Join(root, name))
	qt.Assert(t, qt.IsNil(err))
	for _, value := range notPrinted(valuesOf(string(text), step.Line), string(out)) {
		t.Errorf("%s:%d: %s did not print %s, which the text below has:\n%s", name, step.Line,
			step.Text, value, out)
	}
}

// printedAbove marks a table or a paragraph whose values the command above it prints, in some or
// all columns. They may be rounded.
var printedAbove = regexp.MustCompile(`^<!-- printed above(?:: columns ([0-9 ]+))? -->$`)

// quantity is a number with a unit.
var quantity = regexp.MustCompile(`(\d+(?:\.\d+)?) ?(ns|us|ms|s\b|KB|MB|GB|%|[kMG]bit/s|[kMG]bps)`)

// valuesOf returns the marked values below the command of a line, the last before the mark.
func valuesOf(text string, line int) (values []string) {
	lines := strings.Split(text, "\n")[line:]
	at := slices.IndexFunc(lines, func(l string) bool {
		return printedAbove.MatchString(l) || strings.HasPrefix(l, "$ ")
	})
	if at < 0 || strings.HasPrefix(lines[at], "$ ") {
		return nil
	}
	columns := strings.Fields(printedAbove.FindStringSubmatch(lines[at])[1])
	for _, l := range lines[at+1:] {
		if l == "" {
			break
		}
		for i, cell := range strings.Split(l, "|") {
			if columns == nil || slices.Contains(columns, strconv.Itoa(i)) {
				values = append(values, quantity.FindAllString(cell, -1)...)
			}
		}
	}
	return values
}

// notPrinted returns the values that are none of an output's, rounded as they are.
func notPrinted(values []string, out string) (not []string) {
	parsed := func(text string) (number, half float64, unit string) {
		m := quantity.FindStringSubmatch(text)
		number, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			panic(err) // the expression has digits only
		}
		_, decimals, _ := strings.Cut(m[1], ".")
		return number, 0.5*math.Pow(10, -float64(len(decimals))) + 1e-9,
			strings.Replace(m[2], "bit/s", "bps", 1)
	}
	printed := quantity.FindAllString(out, -1)
	for _, value := range values {
		number, half, unit := parsed(value)
		if !slices.ContainsFunc(printed, func(text string) bool {
			of, _, ofUnit := parsed(text)
			return ofUnit == unit && math.Abs(of-number) <= half
		}) {
			not = append(not, value)
		}
	}
	return not
}

// Values in tables and texts are those of the command above, rounded.
func TestValuesBelowCommands(t *testing.T) {
	const text = "$ a\n...\n$ b\n```\n\n<!-- printed above: columns 2 -->\n" +
		"| 1 us | 99.7% | 7 KB |\n| 2 us | 1.2 MB, 3 Gbit/s | 8 KB |\n\n9 ms\n"
	values := valuesOf(text, 3)
	qt.Check(t, qt.DeepEquals(values, []string{"99.7%", "1.2 MB", "3 Gbit/s"}))
	qt.Check(t, qt.HasLen(valuesOf(text, 1), 0)) // another command is between
	qt.Check(t, qt.HasLen(notPrinted(values, "99.65% 1.232MB 2.96Gbps"), 0))
	qt.Check(t, qt.DeepEquals(notPrinted(values, "99.64% 1.251MB 3.6Gbps"), values))
	qt.Check(t, qt.DeepEquals(notPrinted(values, "99.7KB 1.2MB 3Gbps"), []string{"99.7%"}))
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
	// for what outlives a command that ran too long: its output's end may be read late
	c.WaitDelay = 2 * time.Minute
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

// compare fails if a line that the document shows is not in the output.
func compare(t *testing.T, name string, step console.Step, out []byte) {
	t.Helper()
	for _, line := range missing(step.Printed, string(out)) {
		t.Errorf("%s:%d: %s did not print this line:\n%s\nbut\n%s", name, step.Line, step.Text,
			line, out)
	}
}

// missing returns the lines of a document that are not in the output. "..." stands for any lines.
func missing(shown []string, out string) (lines []string) {
	var printed []string
	for line := range strings.Lines(out) {
		printed = append(printed, ofAnyMachine(line))
	}
	for _, line := range shown {
		if line != "..." && !slices.Contains(printed, ofAnyMachine(line)) {
			lines = append(lines, line)
		}
	}
	return lines
}

// machines matches what differs between machines: seconds by the clock and of CPUs, which have a
// space before their unit, as measured times have not, and the kernel's name.
var machines = regexp.MustCompile(`\b[0-9.]+ s\b|\bkernel \S+,`)

func ofAnyMachine(line string) string {
	return machines.ReplaceAllString(strings.TrimRight(line, " \n"), "#")
}

// The site has a figure of each scheme's page that asks for one: make docs simulates them.
func TestSchemeFigures(t *testing.T) {
	s := newSession(t)
	c := exec.CommandContext(t.Context(), "scripts/scheme-figures.sh", s.dir+"/figures")
	c.Dir = s.root
	s.prepare(c)
	out, err := c.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
	asked := regexp.MustCompile(`(?m)^<!-- figure ([^:]*): `)
	pages, err := filepath.Glob(root + "/docs/schemes/*.md")
	qt.Assert(t, qt.IsNil(err))
	figures := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		qt.Assert(t, qt.IsNil(err))
		for _, m := range asked.FindAllStringSubmatch(string(text), -1) {
			figures++
			svg, err := os.ReadFile(filepath.Join(s.dir, "figures", m[1]+".svg"))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.StringContains(string(svg), "Throughput (Gbit/s)"), qt.Commentf(m[1]))
		}
	}
	qt.Check(t, qt.IsTrue(figures > 10), qt.Commentf("%d", figures))
}

// What a document shows must be printed, to the digit, but for how long the machine took.
func TestMissing(t *testing.T) {
	out := "ok  ends  3.628ms  \nmine: valid, kernel 6.12.1, boot 3.8 s, 30 s in all\n"
	for shown, want := range map[string]bool{
		"ok  ends  3.628ms": true,
		"ok  ends  3.629ms": false,
		"ok  ends  3.628 s": false,
		"...":               true,
		"mine: valid, kernel 7.3.4, boot 0.1 s, 2 s in all":     true,
		"mine: invalid, kernel 6.12.1, boot 3.8 s, 30 s in all": false,
		"mine: valid": false,
	} {
		qt.Check(t, qt.Equals(len(missing([]string{shown}, out)) == 0, want),
			qt.Commentf("%s", shown))
	}
}
