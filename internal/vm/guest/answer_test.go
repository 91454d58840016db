// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

func writeFiles(t testing.TB, files map[string]string) (dir string) {
	dir = t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(p), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(p, []byte(text), 0o644)))
	}
	return dir
}

func someAnswer(t testing.TB, code int) []byte {
	memory := make([]byte, 64<<10)
	dir := writeFiles(t, map[string]string{
		"manifest.json": "{}", "series/queue.csv": "t_ns,bytes\n1,2\n",
	})
	qt.Assert(t, qt.IsNil(writeAnswer(memory, code, dir)))
	return memory
}

func TestAnswerRoundTrip(t *testing.T) {
	code, archive, err := ReadAnswer(bytes.NewReader(someAnswer(t, -1)))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, -1))
	files, err := Files(archive)
	qt.Assert(t, qt.IsNil(err))
	names := slices.Sorted(maps.Keys(files))
	qt.Check(t, qt.DeepEquals(names, []string{"manifest.json", "series/queue.csv"}))
	qt.Check(t, qt.Equals(string(files["manifest.json"]), "{}"))
	qt.Check(t, qt.Equals(string(files["series/queue.csv"]), "t_ns,bytes\n1,2\n"))
}

// The archive does not depend on when the files were written.
func TestAnswerIsReproducible(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a": "1", "b/c": "2"})
	var first, second bytes.Buffer
	qt.Assert(t, qt.IsNil(pack(&first, dir)))
	past := time.Unix(1, 0)
	qt.Assert(t, qt.IsNil(os.Chtimes(filepath.Join(dir, "a"), past, past)))
	qt.Assert(t, qt.IsNil(pack(&second, dir)))
	qt.Check(t, qt.IsTrue(bytes.Equal(first.Bytes(), second.Bytes())))
}

func TestDamagedAnswers(t *testing.T) {
	const none = "the microVM ended without an answer"
	tests := []struct {
		name    string
		damage  func(memory []byte) []byte
		message string
	}{
		{"never written", func(m []byte) []byte { return make([]byte, len(m)) }, none},
		{"empty", func([]byte) []byte { return nil }, none},
		{"half a header", func(m []byte) []byte { return m[:10] }, none},
		{"header only", func(m []byte) []byte { return m[:answerArchive] },
			".*: 0 of [0-9]+ bytes came"},
		{"truncated", func(m []byte) []byte { return m[:answerArchive+100] },
			".*: 100 of [0-9]+ bytes came"},
		{"too long", func(m []byte) []byte { m[14] = 0xff; return m }, ".*more than it can hold"},
		{"one bit wrong", func(m []byte) []byte { m[answerArchive+600] ^= 1; return m },
			".*its checksum is wrong"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := ReadAnswer(bytes.NewReader(test.damage(someAnswer(t, 0))))
			qt.Check(t, qt.ErrorIs(err, ErrNoAnswer))
			qt.Check(t, qt.ErrorMatches(err, test.message))
		})
	}
}

// Results that do not fit leave no answer, rather than a part of one.
func TestAnswerDoesNotFit(t *testing.T) {
	noise := make([]byte, 64<<10)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise) // never fails
	memory := make([]byte, 32<<10)
	err := writeAnswer(memory, 0, writeFiles(t, map[string]string{"big": string(noise)}))
	const hint = "shorten the run, or record less"
	qt.Check(t, qt.ErrorMatches(err, `.*results are larger than 256 MiB: `+hint))
	_, _, err = ReadAnswer(bytes.NewReader(memory))
	qt.Check(t, qt.ErrorIs(err, ErrNoAnswer))
}

func FuzzReadAnswer(f *testing.F) {
	good := someAnswer(f, 3)
	f.Add(good)
	f.Add(good[:answerArchive])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, memory []byte) {
		_, archive, err := ReadAnswer(bytes.NewReader(memory))
		if err == nil && len(archive) > len(memory) {
			t.Errorf("%d bytes came out of %d", len(archive), len(memory))
		}
	})
}

// Whatever a guest packs, no path leads out of the folder that the host unpacks into.
func FuzzFiles(f *testing.F) {
	_, archive, err := ReadAnswer(bytes.NewReader(someAnswer(f, 0)))
	qt.Assert(f, qt.IsNil(err))
	f.Add(archive)
	f.Add(bytes.ReplaceAll(archive, []byte("manifest.json"), []byte("../evil.json\x00")))
	f.Fuzz(func(t *testing.T, archive []byte) {
		files, err := Files(archive)
		if err != nil {
			return
		}
		for name := range files {
			if !filepath.IsLocal(name) {
				t.Errorf("path %q leads out of the folder", name)
			}
		}
	})
}
