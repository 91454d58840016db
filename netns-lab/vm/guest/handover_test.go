// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

// sharedMemory is memory that host and guest share.
func sharedMemory(t *testing.T, j Job, files ...File) []byte {
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	qt.Assert(t, qt.IsNil(WriteJob(f, j, files)))
	qt.Assert(t, qt.IsNil(f.Truncate(1<<20)))
	memory, err := os.ReadFile(f.Name())
	qt.Assert(t, qt.IsNil(err))
	return memory
}

func TestHandOver(t *testing.T) {
	memory := sharedMemory(t, Job{Args: []string{"a b"}, Seed: 1 << 63},
		File{Path: "/etc/deep/tool", Mode: 0o755, Data: []byte("#!")},
		File{Path: "/empty", Mode: 0o600})
	root := t.TempDir()
	// one is there already
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(root, "empty"), []byte("old"), 0o644)))
	qt.Assert(t, qt.IsNil(takeJob(memory, root)))
	text, err := os.ReadFile(filepath.Join(root, JobFile))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(string(text), `"Args":["a b"]`))
	qt.Check(t, qt.StringContains(string(text), `"Seed":9223372036854775808`))
	text, err = os.ReadFile(filepath.Join(root, "etc/deep/tool"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(text), "#!"))
	for name, mode := range map[string]os.FileMode{"etc/deep/tool": 0o755, "empty": 0o600} {
		info, err := os.Stat(filepath.Join(root, name))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(info.Mode().Perm(), mode))
	}
	qt.Check(t, qt.Equals(len(namesIn(t, root)), 3))
}

func namesIn(t *testing.T, dir string) []os.DirEntry {
	entries, err := os.ReadDir(dir)
	qt.Assert(t, qt.IsNil(err))
	return entries
}

func TestNoJob(t *testing.T) {
	qt.Check(t, qt.ErrorIs(takeJob(make([]byte, 1<<20), t.TempDir()), errNoJob))
	memory := sharedMemory(t, Job{})
	qt.Check(t, qt.ErrorIs(takeJob(memory[:5000], t.TempDir()), errNoJob))
	memory[answerArchive+148] ^= 1 // in a checksum of tar
	qt.Check(t, qt.ErrorMatches(takeJob(memory, t.TempDir()), "unpack the job: .*"))
}

func TestJobDoesNotFit(t *testing.T) {
	err := WriteJob(nil, Job{}, []File{{Path: "/big", Data: make([]byte, AnswerBytes)}})
	qt.Check(t, qt.ErrorMatches(err, "the job's files are larger than 256 MiB"))
	full := errors.New("disk full")
	qt.Check(t, qt.ErrorIs(WriteJob(failing{full}, Job{}, nil), full))
}

type failing struct{ err error }

func (f failing) WriteAt([]byte, int64) (int, error) { return 0, f.err }

// A job is no answer: a guest that dies before it answers leaves none.
func TestJobIsNoAnswer(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	qt.Assert(t, qt.IsNil(WriteJob(f, Job{}, nil)))
	_, _, err = ReadAnswer(f)
	qt.Check(t, qt.ErrorIs(err, ErrNoAnswer))
}
