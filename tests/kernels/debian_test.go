// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/debian"
)

// What TestDebian tries. Its file of results stays in debianDir.
var (
	debianPackages = flag.String("debian-packages", "", "files of a kernel's packages, by commas")
	debianSuite    = flag.String("debian-suite", "", "the suite that the packages are from")
	debianPCN      = flag.String("debian-pcn", "", "the version of pcn that is tried")
)

const (
	debianDir   = "testdata/debian"
	debianBegin = "<!-- table: make kernels -->\n"
	debianEnd   = "<!-- end of make kernels -->\n"
)

var allRows = slices.Concat(rows, hostRows)

// trial is what came out on one of Debian's kernels.
type trial struct {
	Kernel string `json:"kernel"`
	Suite  string `json:"suite"`
	Date   string `json:"date"`
	PCN    string `json:"pcn"`
	Cells  column `json:"cells"`
}

// TestDebian tries all objects on one kernel, keeps what came out, and then fails if a row fails.
func TestDebian(t *testing.T) {
	if *debianPackages == "" {
		t.Skip("make kernels runs it, on each of Debian's kernels")
	}
	packages, err := debian.Read(strings.Split(*debianPackages, ","))
	qt.Assert(t, qt.IsNil(err))
	installed, err := debian.Install(t.TempDir(), packages, debian.Tested())
	qt.Assert(t, qt.IsNil(err))
	kernel, err := vm.OpenKernel(filepath.Join(installed.Dir, debian.ImageFile))
	qt.Assert(t, qt.IsNil(err))
	today := time.Now().Format(time.DateOnly)
	tried := trial{installed.Version, *debianSuite, today, *debianPCN, nil}
	left, passed := tryTest(t, "TestGuest", kernel, hostRowsEnv+"=1")
	tried.Cells = readColumn(t, left)
	text, err := json.MarshalIndent(tried, "", "\t")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.MkdirAll(debianDir, 0o755)))
	file := filepath.Join(debianDir, tried.Kernel+".json")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, append(text, '\n'), 0o644)))
	qt.Check(t, qt.IsTrue(passed))
	for _, r := range allRows {
		got := tried.Cells[r.name]
		qt.Check(t, qt.IsFalse(r.everywhere && strings.HasPrefix(got, no) || got == failed),
			qt.Commentf("%s: %s", r.name, got))
	}
}

// The page has what the files of results say.
func TestDebianPage(t *testing.T) {
	want := formatTrials(readTrials(t))
	text, err := os.ReadFile(page)
	qt.Assert(t, qt.IsNil(err))
	before, rest, ok := strings.Cut(string(text), debianBegin)
	qt.Assert(t, qt.IsTrue(ok), qt.Commentf("%s lacks the line %s", page, debianBegin))
	shown, after, ok := strings.Cut(rest, debianEnd)
	qt.Assert(t, qt.IsTrue(ok), qt.Commentf("%s lacks the line %s", page, debianEnd))
	if *update {
		all := before + debianBegin + want + debianEnd + after
		qt.Assert(t, qt.IsNil(os.WriteFile(page, []byte(all), 0o644)))
		return
	}
	qt.Check(t, qt.Equals(shown, want),
		qt.Commentf("go test ./tests/kernels -run '^TestDebianPage$' -update writes it"))
}

// readTrials reads all files of results, in the order of the kernels' releases.
func readTrials(t *testing.T) []trial {
	t.Helper()
	entries, err := os.ReadDir(debianDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	qt.Assert(t, qt.IsNil(err))
	var trials []trial
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(debianDir, e.Name()))
		qt.Assert(t, qt.IsNil(err))
		var one trial
		qt.Assert(t, qt.IsNil(json.Unmarshal(text, &one)), qt.Commentf("%s", e.Name()))
		trials = append(trials, one)
	}
	slices.SortFunc(trials, func(a, b trial) int { return compareReleases(a.Kernel, b.Kernel) })
	return trials
}

// compareReleases orders 6.12.43+deb12 before 6.12.107+deb13.
func compareReleases(a, b string) int {
	key := func(release string) []int {
		n := make([]int, 3)
		fmt.Sscanf(release, "%d.%d.%d", &n[0], &n[1], &n[2])
		return n
	}
	if c := slices.Compare(key(a), key(b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// series of a release is its first two numbers.
func series(release string) string {
	numbers := strings.SplitN(release, ".", 3)
	return strings.Join(numbers[:2], ".")
}

// formatTrials writes what works on which series, and then the kernels.
func formatTrials(trials []trial) string {
	bySeries := map[string][]trial{}
	var titles []string
	for _, one := range trials {
		s := series(one.Kernel)
		if bySeries[s] == nil {
			titles = append(titles, s)
		}
		bySeries[s] = append(bySeries[s], one)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| what | %s |\n|---|%s\n", strings.Join(titles, " | "),
		strings.Repeat("---|", len(titles)))
	for _, r := range allRows {
		fmt.Fprintf(&b, "| %s |", r.name)
		for _, title := range titles {
			fmt.Fprintf(&b, " %s |", seriesCell(bySeries[title], r.name))
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n| kernel | from | tried on | pcn | rows with no |\n|---|---|---|---|---|\n")
	for _, one := range trials {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", shortRelease(one.Kernel), one.Suite,
			one.Date, one.PCN, one.lacking())
	}
	return b.String()
}

func shortRelease(release string) string { return strings.TrimSuffix(release, "-cloud-amd64") }

// seriesCell is the cell that all kernels of a series have, or which kernels have which. A row that
// is newer than most trials is tried on few.
func seriesCell(trials []trial, row string) string {
	var cells []string
	kernels := map[string][]string{}
	for _, one := range trials {
		cell, ok := one.Cells[row]
		if !ok {
			cell = untried
		}
		if kernels[cell] == nil {
			cells = append(cells, cell)
		}
		kernels[cell] = append(kernels[cell], shortRelease(one.Kernel))
	}
	if len(cells) == 1 {
		return cells[0]
	}
	for i, cell := range cells {
		where := strings.Join(kernels[cell], ", ")
		if cell == untried {
			where = "the others"
		}
		cells[i] = cell + " on " + where
	}
	return strings.Join(cells, "; ")
}

// lacking counts the rows that do not work, of all.
func (t trial) lacking() string {
	n := 0
	for _, cell := range t.Cells {
		if strings.HasPrefix(cell, no) {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(t.Cells))
}

func TestFormatTrials(t *testing.T) {
	at := func(kernel, first, second string) trial {
		return trial{kernel + "-cloud-amd64", "trixie", "2026-01-02", "v1",
			column{allRows[0].name: first, allRows[1].name: second}}
	}
	newest := at("6.12.43+deb12", yes, yes)
	newest.Cells[allRows[3].name] = yes
	text := formatTrials([]trial{at("6.9.1+deb13", yes, yes), at("6.12.9+deb12", yes, no), newest})
	lines := strings.Split(text, "\n")
	qt.Check(t, qt.DeepEquals(lines[:6], []string{
		"| what | 6.9 | 6.12 |", "|---|---|---|",
		"| " + allRows[0].name + " | yes | yes |",
		"| " + allRows[1].name + " | yes | no on 6.12.9+deb12; yes on 6.12.43+deb12 |",
		"| " + allRows[2].name + " | untried | untried |",
		"| " + allRows[3].name + " | untried | untried on the others; yes on 6.12.43+deb12 |",
	}))
	qt.Check(t, qt.DeepEquals(lines[len(lines)-4:], []string{
		"| 6.9.1+deb13 | trixie | 2026-01-02 | v1 | 0 of 2 |",
		"| 6.12.9+deb12 | trixie | 2026-01-02 | v1 | 1 of 2 |",
		"| 6.12.43+deb12 | trixie | 2026-01-02 | v1 | 0 of 3 |", "",
	}))
	for _, pair := range [][2]string{{"6.9.1", "6.12.1"}, {"6.12.43+deb12", "6.12.107+deb13"},
		{"6.12.90+deb12", "6.12.90+deb12.1"}, {"6.19.14", "7.0.4"}} {
		qt.Check(t, qt.IsTrue(compareReleases(pair[0], pair[1]) < 0), qt.Commentf("%v", pair))
	}
}
