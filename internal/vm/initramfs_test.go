// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/u-root/u-root/pkg/cpio"

	"github.com/pcn-linux/pcn/internal/vm/guest"
)

// someProgram is a dynamically linked program that every Debian has.
const someProgram = "/bin/sh"

func someKernel(t *testing.T, modules ...string) Kernel {
	dir := t.TempDir()
	for _, m := range modules {
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, m), []byte("module "+m), 0o644)))
	}
	return Kernel{Modules: dir}
}

func build(t *testing.T, exe string, j guest.Job, k Kernel, files ...File) []byte {
	var b bytes.Buffer
	program, err := os.ReadFile(exe)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(initramfs(&b, program, j, k, files)))
	return b.Bytes()
}

func unpackCPIO(t *testing.T, b []byte) (names []string, data map[string]string) {
	r := cpio.EOFReader{RecordReader: cpio.Newc.Reader(bytes.NewReader(b))}
	data = map[string]string{}
	for {
		rec, err := r.ReadRecord()
		if err == io.EOF {
			return names, data
		}
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(rec.MTime, 0))
		names = append(names, rec.Name)
		text, err := io.ReadAll(io.NewSectionReader(rec, 0, int64(rec.FileSize)))
		qt.Assert(t, qt.IsNil(err))
		data[rec.Name] = string(text)
	}
}

func TestInitramfs(t *testing.T) {
	files := []File{{Path: "/etc/deep/b", Mode: 0o644, Data: []byte("B")},
		{Path: "etc/a", Mode: 0o600, Data: []byte("A")}}
	kernel := someKernel(t, "veth.ko", "sch_fq.ko")
	archive := build(t, someProgram, guest.Job{Args: []string{"x"}}, kernel, files...)
	names, data := unpackCPIO(t, archive)

	for _, name := range names {
		if dir := path.Dir(name); dir != "." {
			qt.Check(t, qt.IsTrue(slices.Index(names, dir) >= 0 &&
				slices.Index(names, dir) < slices.Index(names, name)),
				qt.Commentf("%s is not before %s", dir, name))
		}
	}
	program, err := os.ReadFile(someProgram)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(data["init"] == string(program)))
	qt.Check(t, qt.Equals(data["etc/deep/b"], "B"))
	qt.Check(t, qt.Equals(data["etc/a"], "A"))
	qt.Check(t, qt.Equals(data["modules/veth.ko"], "module veth.ko"))
	var j guest.Job
	qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(data["pcn-job.json"]), &j)))
	want := guest.Job{Args: []string{"x"}, Modules: []string{"/modules/veth.ko"}}
	qt.Check(t, qt.DeepEquals(j, want))
	for _, name := range []string{"proc", "sys", "dev/console", "result"} {
		qt.Check(t, qt.IsTrue(slices.Contains(names, name)), qt.Commentf("%s", name))
	}
}

// Modules come after those they depend on, each once; what is not there is built in.
func TestModules(t *testing.T) {
	dir := t.TempDir()
	for name, depends := range map[string]string{"veth": "", "tcp_vegas": "",
		"tcp_yeah": "tcp_vegas", "x": "tcp_yeah,built_in,tcp_vegas"} {
		text := "ELF license=GPL\x00depends=" + depends + "\x00name=" + name + "\x00"
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, name+".ko"), []byte(text), 0o644)))
	}
	for _, test := range []struct {
		modules, want []string
	}{
		{nil, []string{"/modules/veth.ko"}},
		{[]string{"tcp_reno", "veth"}, []string{"/modules/veth.ko"}},
		{[]string{"x", "tcp_vegas"}, []string{"/modules/veth.ko", "/modules/tcp_vegas.ko",
			"/modules/tcp_yeah.ko", "/modules/x.ko"}},
	} {
		_, data := unpackCPIO(t, build(t, someProgram, guest.Job{Modules: test.modules},
			Kernel{Modules: dir}))
		var j guest.Job
		qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(data["pcn-job.json"]), &j)))
		qt.Check(t, qt.DeepEquals(j.Modules, test.want))
		for _, m := range test.want {
			qt.Check(t, qt.StringContains(data[m[1:]], "license=GPL"), qt.Commentf("%s", m))
		}
	}
}

// The same input gives the same bytes: whatever the order and the files' times and places.
func TestInitramfsIsReproducible(t *testing.T) {
	program, err := os.ReadFile(someProgram)
	qt.Assert(t, qt.IsNil(err))
	copied := filepath.Join(t.TempDir(), "copy")
	qt.Assert(t, qt.IsNil(os.WriteFile(copied, program, 0o755)))
	past := time.Unix(1, 0)
	qt.Assert(t, qt.IsNil(os.Chtimes(copied, past, past)))
	a, b := File{Path: "/a", Mode: 0o644, Data: []byte("1")},
		File{Path: "/b", Mode: 0o644, Data: []byte("2")}
	j := guest.Job{Args: []string{"run"}}
	first := build(t, someProgram, j, someKernel(t, "veth.ko"), a, b)
	second := build(t, copied, j, someKernel(t, "veth.ko"), b, a)
	qt.Check(t, qt.IsTrue(bytes.Equal(first, second)))
	other := build(t, copied, guest.Job{Args: []string{"list"}}, someKernel(t, "veth.ko"), b, a)
	qt.Check(t, qt.IsFalse(bytes.Equal(first, other)))
}

func TestInitramfsErrors(t *testing.T) {
	err := initramfs(io.Discard, []byte("no program"), guest.Job{}, someKernel(t), nil)
	qt.Check(t, qt.ErrorMatches(err, "find the libraries of the guest program: .*"))
	text := filepath.Join(t.TempDir(), "text")
	qt.Assert(t, qt.IsNil(os.WriteFile(text, []byte("no program"), 0o755)))
	_, err = Program(text)
	qt.Check(t, qt.ErrorMatches(err, "find the libraries of .*/text: .*"))
	_, err = Program(text + "-missing")
	qt.Check(t, qt.ErrorMatches(err, "read a program for the guest: .*"))
}

// A dynamic program brings its loader and all that it and its libraries need. A boot of one is in
// TestRun, wherever this test is built with cgo.
func TestSharedLibraries(t *testing.T) {
	program, err := os.Open(someProgram)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { program.Close() })
	libraries, err := sharedLibraries(program)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(libraries) >= 2))
	have := map[string]bool{}
	for _, lib := range libraries {
		have[filepath.Base(lib)] = true
	}
	for _, file := range append([]string{someProgram}, libraries...) {
		f, err := elf.Open(file)
		qt.Assert(t, qt.IsNil(err))
		t.Cleanup(func() { f.Close() })
		needed, err := f.ImportedLibraries()
		qt.Assert(t, qt.IsNil(err))
		for _, name := range needed {
			qt.Check(t, qt.IsTrue(have[name]), qt.Commentf("%s needs %s", file, name))
		}
	}
}

func TestFindLibrary(t *testing.T) {
	_, err := findLibrary("libno-such-thing.so.1")
	qt.Check(t, qt.ErrorMatches(err, `library libno-such-thing\.so\.1 is in none of /lib/.*`))
}
