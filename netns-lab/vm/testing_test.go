// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func TestGuestFlags(t *testing.T) {
	qt.Check(t, qt.DeepEquals(
		guestFlags([]string{"-test.v=test2json", "-test.testlogfile=/x", "-test.run=^A$/b=c", "-test.gocoverdir=/y", "-test.outputdir=/z", "arg"}),
		[]string{"-test.v=test2json", "-test.run=^A$/b=c", "arg"}))
}

func TestTestdata(t *testing.T) {
	dir := writeFiles(t, map[string]string{"testdata/deep/a": "1", "other": "2"})
	files, err := testdata(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(files, 2))
	qt.Check(t, qt.Equals(files[1].Path, dir+"/testdata/deep/a"))
	qt.Check(t, qt.Equals(string(files[1].Data), "1"))

	files, err = testdata(t.TempDir())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(files, 1)) // only what makes the working directory
}
