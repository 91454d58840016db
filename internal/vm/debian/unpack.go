// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/pcn-linux/pcn/config/lazy"
)

// Files of a kernel in the cache, beside its modules.
const (
	ImageFile  = "vmlinux" // uncompressed
	ModulesDir = "modules" // folder of .ko files
	configFile = "config"
)

// ARM64Dir is the cache's folder of kernels for arm64; those of amd64 are directly in the cache.
const ARM64Dir = "arm64"

// File is the file of a package.
type File struct {
	Name string
	Data []byte
}

// maxModule bounds an unpacked module; Debian's largest have 3 MiB.
const maxModule = 128 << 20

// What of a package is unpacked. The kernel's version is the first group.
var (
	imagePath  = lazy.Regexp(`^boot/vmlinuz-([^/]+)$|^(?:usr/)?lib/modules/([^/]+)/vmlinuz$`)
	configPath = lazy.Regexp(`^boot/config-([^/]+)$|^(?:usr/)?lib/modules/([^/]+)/config$`)
	// Modules that experiments may use: links, congestion controls, qdiscs.
	modulePath = lazy.Regexp(
		`^(?:usr/)?lib/modules/([^/]+)/kernel/` +
			`(?:drivers/net/veth|net/ipv4/.+|net/sched/.+)\.ko(?:\.xz|\.zst)?$`)
)

// kernel is an unpacked kernel.
type kernel struct {
	version string
	arm64   bool
	files   map[string][]byte // by their paths in the kernel's folder
}

// unpack takes the kernel out of its packages: one, or several if Debian split it.
func unpack(packages []File) (*kernel, error) {
	k := &kernel{files: map[string][]byte{}}
	for _, p := range packages {
		if err := k.addPackage(p.Data); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", p.Name, err)
		}
	}
	for _, want := range []struct{ file, what string }{
		{ImageFile, "boot image (vmlinuz)"},
		{path.Join(ModulesDir, "veth.ko"), "module veth.ko"},
	} {
		if k.files[want.file] == nil {
			return nil, fmt.Errorf("the packages have no %s: want linux-image-*, or since 7.2 "+
				"linux-binary-*, linux-modules-* and linux-base-* of one version", want.what)
		}
	}
	return k, nil
}

func (k *kernel) addPackage(archive []byte) error {
	data, err := files(archive)
	if err != nil {
		return err
	}
	defer data.Close()
	for r := tar.NewReader(data); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read its files: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		name := path.Clean(header.Name)
		if err := k.addFile(name, r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// addFile adds a file of a package, if it is one that microVMs need.
func (k *kernel) addFile(name string, r io.Reader) error {
	if m := imagePath().FindStringSubmatch(name); m != nil {
		boot, err := readAll(r, maxImage)
		if err != nil {
			return err
		}
		image, arm64, err := unpackImage(boot)
		if err != nil {
			return err
		}
		k.arm64 = arm64
		return k.add(m[1]+m[2], ImageFile, image)
	}
	if m := configPath().FindStringSubmatch(name); m != nil {
		text, err := readAll(r, maxModule)
		if err != nil {
			return err
		}
		return k.add(m[1]+m[2], configFile, text)
	}
	m := modulePath().FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	stem, ending, _ := strings.Cut(path.Base(name), ".ko")
	module, err := decompress(ending, r)
	if err != nil {
		return err
	}
	defer module.Close()
	text, err := readAll(module, maxModule)
	if err != nil {
		return err
	}
	return k.add(m[1], path.Join(ModulesDir, stem+".ko"), text)
}

// add adds a file of the kernel's folder. All must be of one version.
func (k *kernel) add(version, file string, data []byte) error {
	k.version = cmp.Or(k.version, version)
	if version != k.version || strings.HasPrefix(version, ".") {
		return fmt.Errorf("of kernel %q: want packages of one kernel, and another is of %q",
			version, k.version)
	}
	k.files[file] = data
	return nil
}
