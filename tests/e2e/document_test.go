// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/result"
	"github.com/pcn-linux/pcn/tests/program"
)

// TestDocumentsChangeNoResult changes a document, which makes another pcn. The bytes stay the same.
func TestDocumentsChangeNoResult(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := read(t, "../../docs/architecture.md")
	changed := filepath.Join(dir, "architecture.md")
	const line = "This line is in the document for a test.\n"
	qt.Assert(t, qt.IsNil(os.WriteFile(changed, append(text, line...), 0o644)))
	other := filepath.Join(dir, "pcn")
	err := program.Build(other, map[string]string{"docs/architecture.md": changed})
	qt.Assert(t, qt.IsNil(err))
	stdout, _, _ := program.Run(t, other, "docs", "architecture")
	qt.Assert(t, qt.StringContains(stdout, line))
	stdout, _, _ = run(t, "docs", "architecture")
	qt.Assert(t, qt.Not(qt.StringContains(stdout, line)))

	first, second := burstOnce(t), burst(t, other, "1", filepath.Join(dir, "second"))
	m, otherM := manifestOf(t, first), manifestOf(t, second)
	qt.Check(t, qt.HasLen(m.GuestSHA256, 64))
	qt.Check(t, qt.HasLen(m.KernelSHA256, 64))
	qt.Check(t, qt.Equals(otherM.GuestSHA256, m.GuestSHA256))
	qt.Check(t, qt.DeepEquals(differing(t, first, second), nil))
	stdout, stderr, code := run(t, "diff", first, second)
	qt.Check(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
}

func manifestOf(t *testing.T, folder string) result.Manifest {
	t.Helper()
	r, err := result.Read(folder)
	qt.Assert(t, qt.IsNil(err))
	return r.Manifest
}
