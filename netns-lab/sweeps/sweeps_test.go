// SPDX-License-Identifier: Apache-2.0

package sweeps

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/sweep"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// What comes along is valid, and named as its file.
func TestSweeps(t *testing.T) {
	names := Names()
	qt.Assert(t, qt.SliceContains(names, "hol-burst"))
	for _, name := range names {
		s, err := LoadWith(name, experiment.Options{})
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(s.Name, name))
		_, err = LoadWith(name+".yaml", experiment.Options{})
		qt.Check(t, qt.IsNil(err), qt.Commentf("by its path"))
	}
	_, err := LoadWith("none", experiment.Options{})
	qt.Check(t, qt.ErrorMatches(err, `no sweep is named "none" \(hint: one of .*hol-burst.*`))
	_, err = LoadWith("none.yaml", experiment.Options{})
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
}

// The example of the docs is a file.
func TestExampleOfTheDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "sweeps.md"))
	qt.Assert(t, qt.IsNil(err))
	example := regexp.MustCompile("(?s)```yaml[^\n]*\n(.*?)```").FindSubmatch(text)
	qt.Assert(t, qt.IsNotNil(example))
	s, err := sweep.Parse("example.yaml", example[1], experiments.Load)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(s.Points, 4))
}
