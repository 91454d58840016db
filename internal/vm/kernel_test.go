// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/debian"
)

func TestFindKernel(t *testing.T) {
	dir := t.TempDir()
	for _, release := range []string{"6.1.0-50-cloud-amd64", "6.12.107+deb13-cloud-amd64",
		"7.2.9+deb13-cloud-amd64", "7.2.12+deb13-cloud-amd64"} {
		qt.Assert(t, qt.IsNil(os.Mkdir(filepath.Join(dir, release), 0o755)))
		image := filepath.Join(dir, release, debian.ImageFile)
		qt.Assert(t, qt.IsNil(os.WriteFile(image, nil, 0o644)))
	}
	// what a set-up that was stopped leaves
	qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Join(dir, ".setup-123", "out"), 0o755)))
	qt.Assert(t, qt.IsNil(os.Mkdir(filepath.Join(dir, "9.9.9"), 0o755)))

	tests := []struct{ version, want string }{
		{"", "7.2.12+deb13-cloud-amd64"},
		{"7", "7.2.12+deb13-cloud-amd64"},
		{"7.2", "7.2.12+deb13-cloud-amd64"},
		{"7.2.9", "7.2.9+deb13-cloud-amd64"},
		{"6", "6.12.107+deb13-cloud-amd64"},
		{"6.1", "6.1.0-50-cloud-amd64"},
		{"6.12.107+deb13-cloud-amd64", "6.12.107+deb13-cloud-amd64"},
	}
	for _, test := range tests {
		k, err := findKernel(dir, test.version, "setup")
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%q", test.version))
		qt.Check(t, qt.Equals(k, Kernel{
			Version: test.want,
			Image:   filepath.Join(dir, test.want, "vmlinux"),
			Modules: filepath.Join(dir, test.want, "modules"),
		}))
	}
	for _, version := range []string{"5", "7.3", "7.2.1", "9.9.9"} {
		_, err := findKernel(dir, version, "setup")
		qt.Check(t, qt.ErrorMatches(err, `no microVM kernel `+version+` in .*: run setup`))
	}
	_, err := findKernel(filepath.Join(dir, "nothing"), "", "setup")
	qt.Check(t, qt.ErrorMatches(err, `no microVM kernel in .*/nothing: run setup`))
}

// The kernel that was tested comes before a newer one, if it is what is asked for.
func TestFindTestedKernel(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("HOME", home) // macOS
	dir, err := KernelCache()
	qt.Assert(t, qt.IsNil(err))
	tested := debian.Tested().Version
	for version, setup := range map[string]string{
		"": "pcn setup", tested: "pcn setup", "5.4": "pcn setup --deb with its packages",
	} {
		_, err := FindKernel(version)
		qt.Check(t, qt.ErrorMatches(err, "no microVM kernel .*in .*: run "+setup))
	}
	_, err = FindARM64Kernel("")
	qt.Check(t, qt.ErrorMatches(err, `no microVM kernel in .*: run scripts/setup.sh --arm64`))

	for _, release := range []string{"6.1.0-50", tested, "99.1.2"} {
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Join(dir, release), 0o755)))
		image := filepath.Join(dir, release, debian.ImageFile)
		qt.Assert(t, qt.IsNil(os.WriteFile(image, nil, 0o644)))
	}
	for version, want := range map[string]string{
		"": tested, tested: tested, "99": "99.1.2", "6.1": "6.1.0-50",
	} {
		k, err := FindKernel(version)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(k.Version, want), qt.Commentf("%q", version))
	}
}

func FuzzCompareVersions(f *testing.F) {
	f.Add("7.2.12+deb13-cloud-amd64", "7.2.9+deb13-cloud-amd64")
	f.Add("6.1.0-50", "")
	f.Add("99999999999999999999", "1")
	f.Fuzz(func(t *testing.T, a, b string) {
		if ab, ba := debian.CompareVersions(a, b), debian.CompareVersions(b, a); ab != -ba ||
			(ab == 0) != (a == b) {
			t.Errorf("compare %q %q: %d, and %d the other way round", a, b, ab, ba)
		}
	})
}

// TestOpenKernel: a file is taken as it is, with the modules beside it.
func TestOpenKernel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "7.9.1-mine")
	image := filepath.Join(dir, "vmlinux")
	_, err := OpenKernel(image)
	qt.Check(t, qt.ErrorMatches(err, "open the kernel: .*no such file.*"))
	qt.Assert(t, qt.IsNil(os.MkdirAll(dir, 0o700)))
	qt.Assert(t, qt.IsNil(os.WriteFile(image, nil, 0o600)))
	k, err := OpenKernel(image)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(k, Kernel{
		Version: "7.9.1-mine", Image: image, Modules: filepath.Join(dir, "modules"),
	}))
}
