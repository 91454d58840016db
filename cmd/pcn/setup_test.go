// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/debian"
	"github.com/pcn-linux/pcn/internal/vm/debian/debiantest"
)

// emptyCache gives pcn a cache of its own, and returns the folder of kernels.
func emptyCache(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
	cache, err := os.UserCacheDir()
	qt.Assert(t, qt.IsNil(err))
	return filepath.Join(cache, "pcn", "kernel")
}

// The kernel is fetched, found again, repaired if a file changed, and refused if it is another.
func TestSetUpKernel(t *testing.T) {
	cache := emptyCache(t)
	const version = "7.0.1-tested"
	data := debiantest.Package(t, debiantest.Kernel(t, version))
	probe, err := debian.Install(t.TempDir(), []debian.File{{Name: "x", Data: data}},
		debian.Release{})
	qt.Assert(t, qt.IsNil(err))
	sum := sha256.Sum256(data)
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, err := w.Write(data)
		qt.Check(t, qt.IsNil(err))
	}))
	defer server.Close()
	var out, progress strings.Builder
	s := setUp{&out, &progress, debian.Release{
		Version: version, UnpackedSHA256: probe.SHA256,
		Packages: []debian.Package{{Path: "x.deb", SHA256: hex.EncodeToString(sum[:])}},
	}, debian.Fetcher{Mirrors: []string{server.URL}, Patience: time.Hour}}

	where := version + " is in " + filepath.Join(cache, version)
	qt.Assert(t, qt.IsNil(s.kernel(t.Context(), nil)))
	qt.Check(t, qt.Equals(out.String(),
		"fetching kernel "+version+", packages: 1\nkernel: "+where+"\n"))
	out.Reset()
	qt.Assert(t, qt.IsNil(s.kernel(t.Context(), nil)))
	qt.Check(t, qt.Equals(out.String(), "kernel: "+where+", verified\n"))
	qt.Check(t, qt.Equals(requests, 1))

	image := filepath.Join(cache, version, debian.ImageFile)
	qt.Assert(t, qt.IsNil(os.WriteFile(image, []byte("half"), 0o644)))
	qt.Assert(t, qt.IsNil(s.kernel(t.Context(), nil)))
	qt.Check(t, qt.StringContains(progress.String(), ": fetching it again\n"))
	qt.Check(t, qt.Equals(requests, 2))

	s.tested.UnpackedSHA256 = "00"
	err = s.kernel(t.Context(), nil)
	qt.Check(t, qt.ErrorMatches(err, "this is not the kernel 7.0.1-tested that was tested: .*"))
	server.Close()
	err = s.kernel(t.Context(), nil)
	qt.Check(t, qt.ErrorMatches(err,
		`(?s)fetch x.deb:\n.*connection refused\nRun pcn setup again, or .* pcn setup --deb .*`))
}

// Packages that are at hand need no network.
func TestSetUpFromFiles(t *testing.T) {
	cache := emptyCache(t)
	file := filepath.Join(t.TempDir(), "linux-image.deb")
	data := debiantest.Package(t, debiantest.Kernel(t, "6.1.0-50"))
	qt.Assert(t, qt.IsNil(os.WriteFile(file, data, 0o644)))
	t.Setenv("PATH", t.TempDir()) // no QEMU
	out, _, err := pcn(t, "setup", "--deb", file)
	qt.Check(t, qt.ErrorMatches(err, "qemu-system-x86_64 is not installed: .*"))
	qt.Check(t, qt.Equals(out, "kernel: 6.1.0-50 is in "+filepath.Join(cache, "6.1.0-50")+"\n"))
	text, err := os.ReadFile(filepath.Join(cache, "6.1.0-50", debian.ImageFile))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(text), debiantest.Image))

	// what fails with the kernel does not hide what is wrong with QEMU
	_, _, err = pcn(t, "setup", "--deb", file+"-none")
	qt.Check(t, qt.ErrorMatches(err,
		"(?s)read a package: .*no such file.*qemu-system-x86_64 is not installed: .*"))
	args := []string{"setup", "--deb", file, "--mirror", "http://localhost"}
	qt.Check(t, qt.Equals(run(t.Context(), args), exitUsage))
	qt.Check(t, qt.Equals(run(t.Context(), args[:3]), exitError), qt.Commentf("no QEMU"))
}
