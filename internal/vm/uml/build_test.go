// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// TestBuildForReal builds from the package that PCN_LINUX_SOURCE names: minutes.
func TestBuildForReal(t *testing.T) {
	file := os.Getenv("PCN_LINUX_SOURCE")
	if file == "" {
		t.Skip("PCN_LINUX_SOURCE names no package of Linux's source")
	}
	data, err := os.ReadFile(file)
	qt.Assert(t, qt.IsNil(err))
	began := time.Now()
	qt.Assert(t, qt.IsNil(Build(t.Context(), os.Getenv("PCN_CACHE"), data, func(done float64) {
		if int(done*1000)%100 == 0 {
			t.Log(time.Since(began), done)
		}
	})))
}

// An object has the same bytes, and is compiled by the same command, in each folder: debug
// information names none, and a copied tree is not compiled again. A folder may have several names.
func TestHidePath(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("compiles C: ", err)
	}
	const makefile = "all:\n\tgcc -g $(KCFLAGS) -c a.c\n\tgcc -g $(KAFLAGS) -c b.S\n" +
		"\techo '$(KCFLAGS) $(KAFLAGS)' > command\n"
	files := map[string]string{
		"Makefile": makefile, "a.c": "int a(int b)\n{\n\treturn b;\n}\n", "b.S": "b:\n\tnop\n",
	}
	var first string
	for _, name := range []string{"one", "another/folder"} {
		folder, link := filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), "link")
		qt.Assert(t, qt.IsNil(os.MkdirAll(folder, 0o755)))
		qt.Assert(t, qt.IsNil(os.Symlink(folder, link)))
		for file, text := range files {
			qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644)))
		}
		for _, tree := range []string{folder, link} {
			qt.Assert(t, qt.IsNil(hidePath(tree)))
			qt.Assert(t, qt.IsNil(run(t.Context(), tree, "make")))
			var made string
			for _, file := range []string{"a.o", "b.o", "command"} {
				text, err := os.ReadFile(filepath.Join(folder, file))
				qt.Assert(t, qt.IsNil(err))
				made += string(text)
			}
			if first == "" {
				first = made
			}
			qt.Check(t, qt.IsTrue(made == first), qt.Commentf("%s", tree))
		}
	}
}
