// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/internal/vm/debian"
)

//go:embed source.yaml
var sourceYAML []byte

//go:embed linux
var ours embed.FS

// oursDir is the folder of our files in ours.
const oursDir = "linux"

// localVersion is what the configuration appends to the kernel's version.
const localVersion = "-pcn"

// Source is the version of Linux that is built.
type Source struct {
	Version  string // of Linux
	Snapshot string // a time of snapshot.debian.org at which the package was there
	Package  debian.Package
	Objects  int // that are compiled, about: to tell how far the build is
}

// Tested returns the source with which this version of the program was tested.
var Tested = sync.OnceValue(func() Source {
	var s Source
	d := yaml.NewDecoder(bytes.NewReader(sourceYAML))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		panic(fmt.Sprintf("source.yaml, which is built in: %v", err)) // a test reads it
	}
	return s
})

// Runs reports whether User Mode Linux runs on this machine's operating system and processor.
func Runs() bool { return runtime.GOOS == "linux" && runtime.GOARCH == "amd64" }

// Release returns the kernel's release, as uname -r prints it.
func Release() string { return Tested().Version + localVersion }

// Recipe returns what identifies the sources: Debian's, and all that is changed and added. It is
// 12 hexadecimal digits. The kernel has it as the name of the machine that built it.
var Recipe = sync.OnceValue(func() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", Tested().Package.SHA256, edits)
	err := fs.WalkDir(ours, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := ours.ReadFile(name)
		fmt.Fprintf(h, "%q %q\n", name, text)
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("read files that are built in: %v", err)) // they are in memory
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
})

// banner is what a kernel of the recipe says of itself.
func banner() string {
	return fmt.Sprintf("Linux version %s (%s@%s)", Release(), builder, Recipe())
}

// Image returns the path of the kernel in a cache.
func Image(cache string) string { return filepath.Join(dir(cache), imageFile) }

// dir returns the folder of the kernel in a cache.
func dir(cache string) string { return filepath.Join(folder(cache), Release()+"-"+Recipe()) }

// folder returns the folder of all kernels of this package in a cache.
func folder(cache string) string { return filepath.Join(cache, "um") }

const imageFile = "linux"
