// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/vm/debian"
	"github.com/pcn-linux/pcn/internal/vm/uml"
)

// Kernel is a guest kernel in the user's cache, where pcn setup puts it.
type Kernel struct {
	Version string // as uname -r has it
	Image   string // vmlinux, uncompressed: QEMU boots it without a decompressor (PVH)
	Modules string // folder of .ko files; "": all are built in
	arm64   bool
	uml     bool // User Mode Linux: Image is a program of this machine
}

// IsUML reports whether the kernel is User Mode Linux, which runs without QEMU.
func (k Kernel) IsUML() bool { return k.uml }

// Default returns the kernel that microVMs have if none is asked for: User Mode Linux where it
// runs, on Linux and amd64, else the one that was tested in QEMU, or the newest.
func Default() (Kernel, error) {
	if !uml.Runs() {
		return FindKernel("")
	}
	cache, err := KernelCache()
	if err != nil {
		return Kernel{}, err
	}
	image := uml.Image(cache)
	if _, err := os.Stat(image); err != nil {
		return Kernel{}, fmt.Errorf("no microVM kernel in %s: run pcn setup", filepath.Dir(image))
	}
	return Kernel{Version: uml.Release(), Image: image, uml: true}, nil
}

// KernelCache returns the folder of all kernels for microVMs. It need not exist.
func KernelCache() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(cache, "pcn", "kernel"), nil
}

// FindKernel returns the kernel of a version in the cache: "6.1" matches 6.1.0-50-cloud-amd64, but
// not 6.12. Of several it is the one that was tested, or else the newest. An empty version matches
// all.
func FindKernel(version string) (Kernel, error) {
	cache, err := KernelCache()
	if err != nil {
		return Kernel{}, err
	}
	setup := "pcn setup"
	if version != "" && !isVersion(debian.Tested().Version, version) {
		setup += " --deb with its packages"
	}
	return findKernel(cache, version, setup)
}

// OpenKernel returns the kernel that a user built under a name, or the one of a version in the
// cache, as [FindKernel] does, or of an image file, whose name has a slash; its modules are in the
// folder modules beside it. Nothing is the [Default], and so is the release of User Mode Linux.
func OpenKernel(versionOrFile string) (Kernel, error) {
	if k, found, err := findOwn(versionOrFile); found || err != nil {
		return k, err
	}
	if versionOrFile == "" || uml.Runs() && versionOrFile == uml.Release() {
		return Default()
	}
	if !strings.Contains(versionOrFile, "/") {
		return FindKernel(versionOrFile)
	}
	if _, err := os.Stat(versionOrFile); err != nil {
		return Kernel{}, fmt.Errorf("open the kernel: %w", err)
	}
	dir := filepath.Dir(versionOrFile)
	return Kernel{
		Version: filepath.Base(dir), Image: versionOrFile,
		Modules: filepath.Join(dir, debian.ModulesDir),
	}, nil
}

// findOwn looks for a kernel that a user built, where User Mode Linux runs.
func findOwn(name string) (k Kernel, found bool, err error) {
	if !uml.Runs() {
		return Kernel{}, false, nil
	}
	cache, err := KernelCache()
	if err != nil {
		return Kernel{}, false, err
	}
	own, err := uml.FindOwn(cache, name)
	if errors.Is(err, os.ErrNotExist) {
		return Kernel{}, false, nil
	}
	return Kernel{Version: own.Release(), Image: own.Image, uml: true}, err == nil, err
}

// FindARM64Kernel is as FindKernel, for a machine of arm64: QEMU emulates it, wherever this runs.
func FindARM64Kernel(version string) (Kernel, error) {
	cache, err := KernelCache()
	if err != nil {
		return Kernel{}, err
	}
	k, err := findKernel(filepath.Join(cache, debian.ARM64Dir), version, setupARM64)
	k.arm64 = true
	return k, err
}

// setupARM64 gets what microVMs of arm64 need.
const setupARM64 = "scripts/setup.sh --arm64"

// findKernel looks for a kernel in a folder. setup is the command that puts one there.
func findKernel(dir, version, setup string) (Kernel, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Kernel{}, fmt.Errorf("look for microVM kernels: %w", err)
	}
	var versions []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), debian.ImageFile)); err == nil &&
			isVersion(e.Name(), version) {
			versions = append(versions, e.Name())
		}
	}
	if len(versions) == 0 {
		return Kernel{}, fmt.Errorf("no microVM kernel %sin %s: run %s",
			orNothing(version), dir, setup)
	}
	found := debian.Tested().Version
	if !slices.Contains(versions, found) {
		found = slices.MaxFunc(versions, debian.CompareVersions)
	}
	return Kernel{
		Version: found,
		Image:   filepath.Join(dir, found, debian.ImageFile),
		Modules: filepath.Join(dir, found, debian.ModulesDir),
	}, nil
}

func isVersion(release, version string) bool {
	rest, ok := strings.CutPrefix(release, version)
	return ok && (version == "" || rest == "" || rest[0] < '0' || rest[0] > '9')
}

func orNothing(version string) string {
	if version == "" {
		return ""
	}
	return version + " "
}
