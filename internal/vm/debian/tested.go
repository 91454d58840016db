// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed tested.yaml
var testedYAML []byte

// Release is one version of a kernel, as packages in Debian's archive. Hashes are in hexadecimal.
type Release struct {
	Version        string // as uname -r has it
	Snapshot       string // a time of snapshot.debian.org at which the packages were there
	UnpackedSHA256 string `yaml:"unpacked_sha256"` // see [Installed.SHA256]
	Packages       []Package
}

// Package is a package in Debian's archive.
type Package struct {
	Path   string // below the archive's root
	SHA256 string
}

// file returns the name of the package's file.
func (p Package) file() string { return path.Base(p.Path) }

// Tested returns the kernel with which this version of the program was tested.
var Tested = sync.OnceValue(func() Release {
	var r Release
	d := yaml.NewDecoder(bytes.NewReader(testedYAML))
	d.KnownFields(true)
	if err := d.Decode(&r); err != nil {
		panic(fmt.Sprintf("tested.yaml, which is built in: %v", err)) // a test reads it
	}
	return r
})
