// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/debian/debiantest"
)

const someVersion = "7.3.4+deb13-cloud-amd64"

// readTree returns all files below a folder.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		tree[name] = string(text)
		return err
	})
	qt.Assert(t, qt.IsNil(err))
	return tree
}

// entries returns the names in a folder.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	qt.Assert(t, qt.IsNil(err))
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestInstall(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "pcn", "kernel")
	packages, files := splitKernel(t, someVersion)
	in, err := Install(cache, packages, Release{})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(in.Version, someVersion))
	qt.Check(t, qt.Equals(in.Dir, filepath.Join(cache, someVersion)))
	qt.Check(t, qt.DeepEquals(readTree(t, in.Dir), files))
	qt.Check(t, qt.DeepEquals(entries(t, cache), []string{someVersion}))
	info, err := os.Stat(in.Dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(info.Mode().Perm(), 0o755))

	// what is there already is replaced, with what a set-up left that was killed
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(in.Dir, "vmlinux"), nil, 0o644)))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(in.Dir, "stray"), nil, 0o644)))
	qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Join(cache, ".setup-123", "new"), 0o755)))
	want := Release{Version: someVersion, UnpackedSHA256: in.SHA256}
	_, err = want.Find(cache)
	qt.Check(t, qt.ErrorMatches(err, "kernel .* has files with SHA-256 .*: want "+in.SHA256))
	again, err := Install(cache, packages, want)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(again, in))
	qt.Check(t, qt.DeepEquals(readTree(t, in.Dir), files))
	qt.Check(t, qt.DeepEquals(entries(t, cache), []string{someVersion}))
	found, err := want.Find(cache)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(found, in))
}

// installEnv names a cache in which the test binary installs a kernel without end.
const installEnv = "PCN_TEST_INSTALL"

// A set-up that is killed, whenever that is, leaves the whole kernel or none.
func TestKilledInstall(t *testing.T) {
	// so large that writing takes longer than reading
	large := map[string]string{"boot/vmlinuz-7.0": string(debiantest.X86(t, ".zst", "kernel"))}
	for i := range 50 {
		name := fmt.Sprintf("lib/modules/7.0/kernel/net/ipv4/m%d.ko", i)
		large[name] = strings.Repeat("module", 1<<15)
	}
	large["lib/modules/7.0/kernel/drivers/net/veth.ko"] = "veth"
	packages := []File{{"image.deb", debiantest.Package(t, large)}}
	if cache := os.Getenv(installEnv); cache != "" {
		for fmt.Println("ready"); ; {
			_, err := Install(cache, packages, Release{})
			qt.Assert(t, qt.IsNil(err))
		}
	}
	in, err := Install(t.TempDir(), packages, Release{})
	qt.Assert(t, qt.IsNil(err))
	want := Release{Version: in.Version, UnpackedSHA256: in.SHA256}

	cache := t.TempDir()
	left := 0
	for i := range 10 {
		c := exec.Command(os.Args[0], "-test.run", "^TestKilledInstall$")
		c.Env = append(os.Environ(), installEnv+"="+cache)
		out, err := c.StdoutPipe()
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsNil(c.Start()))
		_, err = out.Read(make([]byte, 1))
		qt.Assert(t, qt.IsNil(err))
		time.Sleep(time.Duration(i) * 7 * time.Millisecond)
		qt.Assert(t, qt.IsNil(c.Process.Kill()))
		qt.Check(t, qt.IsNotNil(c.Wait()))
		_, err = want.Find(cache)
		qt.Check(t, qt.IsTrue(err == nil || errors.Is(err, fs.ErrNotExist)), qt.Commentf("%v", err))
		staging, err := filepath.Glob(filepath.Join(cache, stagingPrefix+"*"))
		qt.Assert(t, qt.IsNil(err))
		left += len(staging)
	}
	t.Logf("%d of 10 were killed while they wrote", left)
	_, err = Install(cache, packages, want)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(entries(t, cache), []string{in.Version}))
}

// The hash is that of the command that tested.yaml names.
func TestDigestIsSha256sums(t *testing.T) {
	packages, _ := splitKernel(t, someVersion)
	in, err := Install(t.TempDir(), packages, Release{})
	qt.Assert(t, qt.IsNil(err))
	var command string
	for line := range strings.Lines(string(testedYAML)) {
		if strings.HasPrefix(line, "# find ") {
			command = strings.TrimPrefix(line, "# ")
		}
	}
	c := exec.Command("bash", "-c", command)
	c.Dir = in.Dir
	out, err := c.Output()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(out), in.SHA256+"  -\n"))
}

// A package as Debian made it before it split kernels, and one for arm64.
func TestOtherLayouts(t *testing.T) {
	for _, test := range []struct{ version, image, below string }{
		{"6.1.0-50-cloud-amd64", string(debiantest.X86(t, ".lz4", "kernel")), "."},
		{"6.12.9-cloud-arm64", string(debiantest.ARM64()), ARM64Dir},
	} {
		cache := t.TempDir()
		in, err := Install(cache, []File{{"image.deb", debiantest.Package(t, map[string]string{
			"boot/vmlinuz-" + test.version:                                test.image,
			"boot/config-" + test.version:                                 "CONFIG_NET=y\n",
			"lib/modules/" + test.version + "/kernel/drivers/net/veth.ko": "veth",
		})}}, Release{})
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(in.Dir, filepath.Join(cache, test.below, test.version)))
		qt.Check(t, qt.DeepEquals(slices.Sorted(maps.Keys(readTree(t, in.Dir))),
			[]string{"config", "modules/veth.ko", "vmlinux"}))
	}
}

// What is not the kernel that is wanted, or not a kernel, changes nothing in the cache.
func TestInstallErrors(t *testing.T) {
	packages, _ := splitKernel(t, someVersion)
	other, _ := splitKernel(t, "7.3.5")
	hidden, _ := splitKernel(t, ".7")
	broken := File{"modules.deb", debiantest.Package(t, map[string]string{
		"lib/modules/" + someVersion + "/kernel/drivers/net/veth.ko.xz": "no xz",
	})}
	noTar := File{"x.deb", debiantest.Ar([2]string{"data.tar", strings.Repeat("x", 1024)})}
	for name, test := range map[string]struct {
		packages []File
		want     Release
		message  string
	}{
		"nothing":    {nil, Release{}, `the packages have no boot image \(vmlinuz\): want .*`},
		"no modules": {packages[:1], Release{}, `the packages have no module veth.ko: want .*`},
		"two kernels": {[]File{packages[0], other[1]}, Release{},
			`unpack modules.deb: .*veth.ko.*: of kernel "7.3.5": want packages of one kernel, .*`},
		"hidden": {hidden, Release{}, `unpack binary.deb: .*: of kernel "\.7": .*`},
		"files": {packages, Release{Version: someVersion, UnpackedSHA256: "00"},
			`this is not the kernel 7.3.4\S+ that was tested: it unpacks to files with SHA-256 ` +
				`[0-9a-f]+, want 00`},
		"module": {[]File{packages[0], broken}, Release{},
			`unpack modules.deb: lib/modules/.*: decompress: .*`},
		"tar": {[]File{noTar}, Release{}, `unpack x.deb: read its files: .*`},
		"cut": {[]File{{"x.deb", packages[0].Data[:200]}}, Release{}, `unpack x.deb: not a .*`},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			_, err := Install(cache, test.packages, test.want)
			qt.Check(t, qt.ErrorMatches(err, test.message))
			qt.Check(t, qt.HasLen(entries(t, cache), 0))
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, nil, 0o644)))
	_, err := Install(file, packages, Release{})
	qt.Check(t, qt.ErrorMatches(err, "write kernel .* to the cache: .*not a directory"))
	_, err = Release{Version: "7"}.Find(t.TempDir())
	qt.Check(t, qt.ErrorIs(err, fs.ErrNotExist))
}

// tested.yaml can be read, and names what it must.
func TestTested(t *testing.T) {
	r := Tested()
	qt.Check(t, qt.IsTrue(len(r.Version) > 0 && len(r.Packages) > 0))
	qt.Check(t, qt.Matches(r.Snapshot, `\d{8}T\d{6}Z`))
	hashes := []string{r.UnpackedSHA256}
	for _, p := range r.Packages {
		qt.Check(t, qt.Matches(p.Path, `pool/main/.*\.deb`))
		qt.Check(t, qt.StringContains(p.Path, r.Version))
		hashes = append(hashes, p.SHA256)
	}
	for _, hash := range hashes {
		qt.Check(t, qt.Matches(hash, `[0-9a-f]{64}`))
	}
}

// Where set-up has put the tested kernel, it is the one that was tested, file by file.
func TestTestedKernelOfTheCache(t *testing.T) {
	cache, err := os.UserCacheDir()
	qt.Assert(t, qt.IsNil(err))
	cache = filepath.Join(cache, "pcn", "kernel")
	if _, err := os.Stat(filepath.Join(cache, Tested().Version)); err != nil {
		t.Skipf("there is no tested kernel: %v (pcn setup fetches it)", err)
	}
	_, err = Tested().Find(cache)
	qt.Check(t, qt.IsNil(err))
}

// splitKernel returns the packages of a kernel as Debian splits them, and the files that it has in
// the cache.
func splitKernel(t testing.TB, version string) (packages []File, files map[string]string) {
	t.Helper()
	in := "usr/lib/modules/" + version + "/"
	packed := func(ending, text string) string { return debiantest.Compress(t, ending, text) }
	image := map[string]string{in + "vmlinuz": string(debiantest.X86(t, ".zst", debiantest.Image))}
	modules := map[string]string{
		"drivers/net/veth.ko.xz":             packed(".xz", "veth"),
		"drivers/net/vethother.ko.xz":        "no module of ours",
		"fs/ext4.ko.xz":                      "no module of ours",
		"net/ipv4/tcp_bbr.ko":                "bbr",
		"net/ipv4/netfilter/ip_tables.ko.xz": packed(".xz", "tables"),
		"net/sched/sch_red.ko.zst":           packed(".zst", "red"),
	}
	placed := map[string]string{in + "modules.order": "text"}
	for name, data := range modules {
		placed[in+"kernel/"+name] = data
	}
	base := map[string]string{in + "config": "CONFIG_NET=y\n", in + "System.map": "ffff"}
	return []File{
			{"binary.deb", debiantest.Package(t, image)},
			{"modules.deb", debiantest.Package(t, placed)},
			{"base.deb", debiantest.Package(t, base)},
		}, map[string]string{
			"vmlinux": debiantest.Image, "config": "CONFIG_NET=y\n",
			"modules/veth.ko": "veth", "modules/tcp_bbr.ko": "bbr",
			"modules/ip_tables.ko": "tables", "modules/sch_red.ko": "red",
		}
}
