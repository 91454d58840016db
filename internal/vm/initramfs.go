// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/u-root/u-root/pkg/cpio"

	"github.com/pcn-linux/pcn/internal/vm/guest"
)

// File is a file of the guest, beside the program.
type File = guest.File

// modulesPath is the guest's folder of kernel modules.
const modulesPath = "/modules"

// guestModules are the kernel modules that any guest may need.
var guestModules = []string{"veth"}

// module is a kernel module.
type module struct {
	file string
	data []byte
}

// initramfs writes the archive; equal files give equal bytes. The program becomes /init. The job
// lists modules by name.
func initramfs(w io.Writer, program []byte, j guest.Job, kernel Kernel, files []File) error {
	records := map[string]cpio.Record{}
	add := func(name string, mode uint64, data []byte) {
		name = strings.TrimPrefix(path.Clean("/"+name), "/")
		records[name] = cpio.StaticRecord(data, cpio.Info{Name: name, Mode: cpio.S_IFREG | mode})
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			records[dir] = cpio.Directory(dir, 0o755)
		}
	}
	add("/init", 0o755, program)
	libraries, err := sharedLibraries(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("find the libraries of the guest program: %w", err)
	}
	for _, name := range libraries {
		data, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read library: %w", err)
		}
		add(name, 0o755, data)
	}
	loaded, err := loadedModules(kernel, slices.Concat(guestModules, j.Modules))
	if err != nil {
		return err
	}
	j.Modules = nil
	for _, m := range loaded {
		add(m.Path, m.Mode, m.Data)
		j.Modules = append(j.Modules, m.Path)
	}
	text, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode the guest's job: %w", err)
	}
	add(guest.JobFile, 0o644, text)
	for _, f := range files {
		add(f.Path, f.Mode, f.Data)
	}
	result := strings.TrimPrefix(guest.ResultDir, "/")
	for _, dir := range []string{"proc", "sys", "dev", "tmp", "run", result} {
		records[dir] = cpio.Directory(dir, 0o755)
	}
	records["dev/console"] = cpio.CharDev("dev/console", 0o600, 5, 1)
	return writeArchive(w, records)
}

// loadedModules returns the modules of these names, and those that they need, as files of the
// guest, in the order in which to load them.
func loadedModules(kernel Kernel, names []string) ([]File, error) {
	var modules []module
	for _, name := range names {
		if err := addModule(&modules, kernel.Modules, name); err != nil {
			return nil, err
		}
	}
	var files []File
	for _, m := range modules {
		at := path.Join(modulesPath, m.file)
		files = append(files, File{Path: at, Mode: 0o644, Data: m.data})
	}
	return files, nil
}

// addModule adds the module after its dependencies. It assumes that a module that is not in the
// folder is built in; "" is no folder.
func addModule(out *[]module, dir, name string) error {
	file := name + ".ko"
	if dir == "" || slices.ContainsFunc(*out, func(m module) bool { return m.file == file }) {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read kernel module: %w", err)
	}
	for _, needed := range dependencies(data) {
		if err := addModule(out, dir, needed); err != nil {
			return err
		}
	}
	*out = append(*out, module{file, data})
	return nil
}

// dependencies returns the names in a module's .modinfo, which consists of key=value texts that end
// in NUL.
func dependencies(module []byte) []string {
	_, rest, _ := bytes.Cut(module, []byte("\x00depends="))
	names, _, _ := bytes.Cut(rest, []byte{0})
	return strings.FieldsFunc(string(names), func(r rune) bool { return r == ',' })
}

// writeArchive writes the records sorted by name, so that a folder comes before what is in it.
func writeArchive(w io.Writer, records map[string]cpio.Record) error {
	sorted := slices.SortedFunc(maps.Values(records),
		func(a, b cpio.Record) int { return strings.Compare(a.Name, b.Name) })
	cpio.MakeAllReproducible(sorted)
	archive := cpio.Newc.Writer(w)
	if err := cpio.WriteRecords(archive, sorted); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	if err := cpio.WriteTrailer(archive); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return nil
}

// Program returns a program of this machine and its libraries as files of the guest, under the same
// paths.
func Program(name string) ([]File, error) {
	program, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read a program for the guest: %w", err)
	}
	libraries, err := sharedLibraries(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("find the libraries of %s: %w", name, err)
	}
	var files []File
	for _, from := range libraries {
		data, err := os.ReadFile(from)
		if err != nil {
			return nil, fmt.Errorf("read a library for the guest: %w", err)
		}
		files = append(files, File{Path: from, Mode: 0o755, Data: data})
	}
	return append(files, File{Path: name, Mode: 0o755, Data: program}), nil
}

// libraryDirs are the folders of shared libraries, Debian's first.
var libraryDirs = []string{
	"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib",
	"/usr/lib",
}

// sharedLibraries returns the paths of the loader and the libraries that a dynamically linked
// program needs; none for a static one. A test binary is dynamic wherever cgo is on.
func sharedLibraries(program io.ReaderAt) ([]string, error) {
	f, err := elf.NewFile(program)
	if err != nil {
		return nil, err
	}
	loader, err := interpreter(f)
	if err != nil || loader == "" {
		return nil, err
	}
	out := []string{loader}
	err = addLibraries(&out, f)
	return out, err
}

// interpreter returns the loader of a program; "" for a static one.
func interpreter(f *elf.File) (string, error) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(p.Open())
			return strings.TrimRight(string(b), "\x00"), err
		}
	}
	return "", nil
}

// addLibraries adds the libraries that f needs, and theirs.
func addLibraries(out *[]string, f *elf.File) error {
	names, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, name := range names {
		from, err := findLibrary(name)
		if err != nil {
			return err
		}
		if slices.Contains(*out, from) {
			continue
		}
		*out = append(*out, from)
		lib, err := elf.Open(from)
		if err != nil {
			return err
		}
		err = addLibraries(out, lib)
		lib.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func findLibrary(name string) (string, error) {
	for _, dir := range libraryDirs {
		p := filepath.Join(dir, name)
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("library %s is in none of %s", name, strings.Join(libraryDirs, ", "))
}
