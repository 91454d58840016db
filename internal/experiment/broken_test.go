// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// TestBrokenFiles: a file with one mistake gets one message, with a place and what to do. The first
// line of each file is the message that it must get.
func TestBrokenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(files) >= 60), qt.Commentf("%d files", len(files)))
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			qt.Assert(t, qt.IsNil(err))
			first, _, _ := bytes.Cut(data, []byte("\n"))
			want, ok := strings.CutPrefix(string(first), "# want: ")
			qt.Assert(t, qt.IsTrue(ok), qt.Commentf("%s begins without # want:", file))
			// One message has a line, a column and a hint.
			qt.Check(t, qt.Matches(want, `\d+:\d+: .* \(hint: .*\)`))
			_, err = Parse("f", data)
			qt.Assert(t, qt.IsNotNil(err))
			qt.Check(t, qt.Equals(err.Error(), "f:"+expand(want)))
		})
	}
}
