// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/guest"
)

var update = flag.Bool("update", false, "write the table of docs/kernels.md")

// The guest's side of a test is TestGuest of this binary, which leaves its column of the table in resultFile.
const (
	resultDirEnv = "PCN_KERNELS_RESULT"
	hostRowsEnv  = "PCN_KERNELS_HOST" // also hostRows
	resultFile   = "column.json"
	ownKernelEnv = "PCN_OWN_KERNEL"
	page         = "../../docs/kernels.md"
)

func TestMain(m *testing.M) {
	if guest.Inside() {
		guest.Main(func([]string) int { return m.Run() })
	}
	os.Exit(m.Run())
}

// kernels are those of the matrix that Debian has, by the start of their release.
var kernels = []struct{ version, title, suite string }{
	{"6.1", "6.1", "bookworm"},
	{"6.12", "6.12", "trixie"},
	{"7", "7.x", "trixie-backports"},
}

// column is what came out on one kernel, by the rows' names.
type column map[string]string

// Everything that must work does, on each kernel, and docs/kernels.md says so.
func TestKernels(t *testing.T) {
	var mu sync.Mutex
	columns := map[string]column{}
	t.Run("run", func(t *testing.T) {
		for _, k := range kernels {
			t.Run(k.title, func(t *testing.T) {
				t.Parallel()
				c := runInVM(t, k.version, k.suite)
				checkColumn(t, c)
				mu.Lock()
				defer mu.Unlock()
				columns[k.title] = c
			})
		}
		t.Run("own", func(t *testing.T) {
			if os.Getenv(ownKernelEnv) == "" {
				t.Skip("this machine's own kernel is left alone: set " + ownKernelEnv + "=1, as root, to test it too")
			}
			c := runHere(t)
			checkColumn(t, c)
			mu.Lock()
			defer mu.Unlock()
			columns[ownTitle(t)] = c
		})
	})
	if t.Failed() {
		return
	}
	checkPage(t, columns)
}

// runInVM runs TestGuest on a kernel of the cache.
func runInVM(t *testing.T, version, suite string) column {
	t.Helper()
	return readColumn(t, runTest(t, "TestGuest", kernelOf(t, version, suite)))
}

// kernelOf finds a kernel of the cache.
func kernelOf(t *testing.T, version, suite string) vm.Kernel {
	t.Helper()
	kernel, err := vm.FindKernel(version)
	if err != nil {
		t.Fatalf("%v --kernel-suite %s", err, suite)
	}
	return kernel
}

// runTest runs a test of this binary on a kernel, and returns what it left. It must pass.
func runTest(t *testing.T, name string, kernel vm.Kernel) map[string][]byte {
	t.Helper()
	left, passed := tryTest(t, name, kernel)
	if !passed {
		t.FailNow()
	}
	return left
}

// tryTest is as runTest, for a test that may fail.
func tryTest(
	t *testing.T, name string, kernel vm.Kernel, env ...string,
) (left map[string][]byte, passed bool) {
	t.Helper()
	var files []vm.File
	for _, name := range []string{"iperf3", "curl", "ss"} {
		files = append(files, program(t, name)...)
	}
	args := []string{"-test.run=^" + name + "$", "-test.v"}
	if !testing.Verbose() {
		args = append(args, "-test.short") // without runs whose log nobody would see
	}
	res, err := vm.Run(t.Context(), vm.Config{
		Kernel: kernel, Args: args, Dir: "/tmp", Files: files,
		Env:     append(env, resultDirEnv+"="+guest.ResultDir),
		Modules: []string{"sch_ingress", "cls_bpf", "tcp_bbr", "tcp_diag"},
		HostCPU: -1, Seed: 1, Console: nil,
	})
	qt.Assert(t, qt.IsNil(err), qt.Commentf("microVM of %s:\n%s", kernel.Version, res.Console))
	passed = res.ExitCode == 0
	if testing.Verbose() || !passed {
		t.Logf("%s, exit code %d, boot %v, wall %v:\n%s", kernel.Version, res.ExitCode, res.Boot,
			res.Wall, res.Console)
	}
	left, err = res.Files()
	qt.Assert(t, qt.IsNil(err))
	return left, passed
}

// program are the files of a program of this machine.
func program(t *testing.T, name string) []vm.File {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: run scripts/setup.sh --dev", err)
	}
	files, err := vm.Program(path)
	qt.Assert(t, qt.IsNil(err))
	return files
}

// runHere runs TestGuest on this machine's kernel.
func runHere(t *testing.T) column {
	t.Helper()
	nstest.RequireRoot(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe", "-test.run=^TestGuest$", "-test.v")
	cmd.Env = append(os.Environ(), resultDirEnv+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if testing.Verbose() {
		t.Logf("%s", out)
	}
	text, err := os.ReadFile(filepath.Join(dir, resultFile))
	qt.Assert(t, qt.IsNil(err))
	return readColumn(t, map[string][]byte{resultFile: text})
}

func readColumn(t *testing.T, files map[string][]byte) column {
	t.Helper()
	text := files[resultFile]
	var c column
	qt.Assert(t, qt.IsNil(json.Unmarshal(text, &c)))
	return c
}

func (c column) write(dir string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, resultFile), text, 0o644)
}

// ownTitle is this machine's release: its first two numbers.
func ownTitle(t *testing.T) string {
	t.Helper()
	var name unix.Utsname
	qt.Assert(t, qt.IsNil(unix.Uname(&name)))
	numbers := strings.SplitN(unix.ByteSliceToString(name.Release[:]), ".", 3)
	return strings.Join(numbers[:2], ".")
}

// checkColumn checks what no kernel may lack, whatever the page says.
func checkColumn(t *testing.T, c column) {
	t.Helper()
	for _, r := range rows {
		got, ok := c[r.name]
		qt.Check(t, qt.IsTrue(ok), qt.Commentf("row %q is missing", r.name))
		if r.everywhere {
			qt.Check(t, qt.IsFalse(strings.HasPrefix(got, no)), qt.Commentf("%s: %s", r.name, got))
		}
	}
}

// The table of the page stands between these lines.
const (
	tableBegin = "<!-- table: go test ./tests/kernels -update -->\n"
	tableEnd   = "<!-- end of table -->\n"
)

// checkPage holds the columns against the page's, or writes them there. Columns of kernels that did not run stay.
func checkPage(t *testing.T, columns map[string]column) {
	t.Helper()
	text, err := os.ReadFile(page)
	qt.Assert(t, qt.IsNil(err))
	before, rest, ok := strings.Cut(string(text), tableBegin)
	qt.Assert(t, qt.IsTrue(ok), qt.Commentf("%s lacks the line %s", page, tableBegin))
	table, after, ok := strings.Cut(rest, tableEnd)
	qt.Assert(t, qt.IsTrue(ok), qt.Commentf("%s lacks the line %s", page, tableEnd))
	shown := parseTable(table)
	if *update {
		maps.Copy(shown, columns)
		qt.Assert(t, qt.IsNil(os.WriteFile(page, []byte(before+tableBegin+formatTable(shown)+tableEnd+after), 0o644)))
		return
	}
	for title, c := range columns {
		if _, ok := shown[title]; !ok && title == ownTitle(t) {
			t.Logf("this machine's kernel is not in %s; it has:\n%s", page, formatTable(map[string]column{title: c}))
			continue
		}
		qt.Check(t, qt.DeepEquals(shown[title], c), qt.Commentf("kernel %s in %s: if this is right, run with -update", title, page))
	}
}

func parseTable(text string) map[string]column {
	columns := map[string]column{}
	var titles []string
	for line := range strings.Lines(text) {
		cells := cellsOf(line)
		switch {
		case len(cells) < 2 || strings.HasPrefix(cells[1], "--"):
		case titles == nil:
			titles = cells[1:]
			for _, title := range titles {
				columns[title] = column{}
			}
		default:
			for i, title := range titles {
				columns[title][cells[0]] = cells[i+1]
			}
		}
	}
	return columns
}

func cellsOf(line string) (cells []string) {
	for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells
}

func formatTable(columns map[string]column) string {
	var titles []string
	for title := range columns {
		titles = append(titles, title)
	}
	slices.SortFunc(titles, compareTitles)
	var b strings.Builder
	fmt.Fprintf(&b, "| what | %s |\n|---|%s\n", strings.Join(titles, " | "), strings.Repeat("---|", len(titles)))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |", r.name)
		for _, title := range titles {
			fmt.Fprintf(&b, " %s |", columns[title][r.name])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// compareTitles orders releases: 6.1, 6.12, 6.12 arm64, 6.18, 7.x.
func compareTitles(a, b string) int {
	key := func(title string) (major, minor int) {
		if _, err := fmt.Sscanf(title, "%d.%d", &major, &minor); err != nil {
			minor = 1 << 20 // of 7.x
		}
		return major, minor
	}
	aMajor, aMinor := key(a)
	bMajor, bMinor := key(b)
	return cmp.Or(aMajor-bMajor, aMinor-bMinor, strings.Compare(a, b))
}

func TestTable(t *testing.T) {
	columns := map[string]column{}
	for _, title := range []string{"7.x", "6.18", "6.1", "6.12 arm64", "6.12"} {
		columns[title] = column{}
		for _, r := range rows {
			columns[title][r.name] = title + " " + r.name
		}
	}
	text := formatTable(columns)
	qt.Check(t, qt.IsTrue(strings.HasPrefix(text, "| what | 6.1 | 6.12 | 6.12 arm64 | 6.18 | 7.x |\n|---|---|---|---|---|---|\n")), qt.Commentf("%s", text))
	qt.Check(t, qt.DeepEquals(parseTable(text), columns))
}
