// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
)

// TestBrokenFilesAreRefused: each way to run, repeat or show an experiment refuses a broken file in
// the words that its first line says.
func TestBrokenFilesAreRefused(t *testing.T) {
	files, err := filepath.Glob("../../internal/experiment/testdata/broken/*.yaml")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(files) >= 60), qt.Commentf("%d files", len(files)))
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			qt.Assert(t, qt.IsNil(err))
			first, _, _ := bytes.Cut(data, []byte("\n"))
			want, ok := strings.CutPrefix(string(first), "# want: ")
			qt.Assert(t, qt.IsTrue(ok))
			keys := slices.Concat(config.KeysOf(reflect.TypeFor[experiment.Experiment]()),
				scheme.Builtin().SectionNames())
			want = strings.Replace(want, "ANY KEY", config.Suggest("", keys), 1)

			dir := t.TempDir()
			path, err := filepath.Abs(file)
			qt.Assert(t, qt.IsNil(err))
			sweep := filepath.Join(dir, "sweep.yaml")
			qt.Assert(t, qt.IsNil(os.WriteFile(sweep, []byte("name: s\nexperiment: "+path+
				"\nschemes: [dcqcn]\nset: {title: x}\nseeds: [1]\n"+
				"metrics: [{name: lost, metric: lost_packets}]\n"), 0o600)))
			run := resulttest.Fig2(parse(t, small), "pcn")
			sum := sha256.Sum256(data)
			run.Experiment, run.Manifest.ExperimentSHA256 = data, hex.EncodeToString(sum[:])
			runDir := filepath.Join(dir, "runs", "pcn")
			qt.Assert(t, qt.IsNil(run.Write(runDir)))

			for _, args := range [][]string{
				{"run", path, "--algo", "dcqcn"},
				{"run", path, "--case", "plain"},
				{"run", path, "--seed", "2", "--duration", "15ms", "--dilation", "12"},
				{"run", path, "--seeds", "1..3"},
				{"sweep", sweep},
				{"topo", path},
				{"compare", runDir},
				{"report", runDir, "--out", filepath.Join(dir, "report.html")},
			} {
				if args[0] == "run" || args[0] == "sweep" {
					args = append(args, "--engine", "sim", "--out", filepath.Join(dir, "out"))
				}
				out, _, err := pcn(t, args...)
				said := out
				if err != nil {
					said = err.Error()
				}
				qt.Check(t, qt.StringContains(said, want), qt.Commentf("%q", args))
			}
			_, err = os.Stat(filepath.Join(dir, "out"))
			qt.Check(t, qt.ErrorIs(err, os.ErrNotExist), qt.Commentf("something ran"))

			read, err := result.Read(runDir) // as `pcn rerun` does
			qt.Assert(t, qt.IsNil(err))
			_, err = launch.Again(read)
			qt.Assert(t, qt.IsNotNil(err))
			qt.Check(t, qt.StringContains(err.Error(), want))
		})
	}
}
