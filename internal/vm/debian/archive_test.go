// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/debian/debiantest"
)

func TestMember(t *testing.T) {
	archive := debiantest.Ar([2]string{"odd", "abc"}, [2]string{"data.tar.xz/", "12345"})
	name, data, err := member(archive, "data.tar")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(name, "data.tar.xz"))
	qt.Check(t, qt.Equals(string(data), "12345"))

	size := bytes.Index(archive, []byte("3         `"))
	noNumber := bytes.Clone(archive)
	noNumber[size] = 'x'
	for name, broken := range map[string]struct {
		archive []byte
		want    string
	}{
		"other": {[]byte("PK\x03\x04"),
			"not a Debian package: want an ar archive with a data.tar"},
		"nothing": {debiantest.Ar(), "not a Debian package: .*: it has no data.tar"},
		"header":  {archive[:len(arMagic)+30], ".*: a member's header is broken"},
		"shifted": {append([]byte(arMagic), archive[len(arMagic)+1:]...),
			".*: a member's header is broken"},
		"size": {noNumber, `.*: a member has size "x"`},
		"cut":  {archive[:len(archive)-3], ".*: it ends within a member: want 5 bytes, have 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := member(broken.archive, "data.tar")
			qt.Check(t, qt.ErrorIs(err, errNoPackage))
			qt.Check(t, qt.ErrorMatches(err, broken.want))
		})
	}
}

// A package that dpkg-deb made is read as dpkg-deb reads it.
func TestDpkgMakesWhatWeRead(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("there is no dpkg-deb: it is Debian's")
	}
	dir := t.TempDir()
	const control = "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\n" +
		"Description: x\n"
	for name, text := range map[string]string{"DEBIAN/control": control, "boot/config-1": "text"} {
		file := filepath.Join(dir, "root", name)
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(file), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o644)))
	}
	for _, compression := range []string{"xz", "zstd", "none"} {
		file := filepath.Join(dir, "x.deb")
		out, err := exec.Command("dpkg-deb", "-Z"+compression, "--build",
			filepath.Join(dir, "root"), file).CombinedOutput()
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
		archive, err := os.ReadFile(file)
		qt.Assert(t, qt.IsNil(err))
		tarred, err := files(archive)
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", compression))
		got, err := io.ReadAll(tarred)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsNil(tarred.Close()))
		want, err := exec.Command("dpkg-deb", "--fsys-tarfile", file).Output()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(bytes.Equal(got, want)), qt.Commentf("%s", compression))
	}
}

func TestDecompressErrors(t *testing.T) {
	_, err := decompress(".gz", nil)
	qt.Check(t, qt.ErrorMatches(err, `unknown compression ".gz": want .xz, .zst or none`))
	_, err = decompress(".xz", strings.NewReader("no xz"))
	qt.Check(t, qt.ErrorMatches(err, "decompress: .*"))
	_, err = readAll(strings.NewReader("12345"), 4)
	qt.Check(t, qt.ErrorMatches(err, "it is larger than 0 MiB"))
}

func FuzzMember(f *testing.F) {
	f.Add(debiantest.Ar([2]string{"debian-binary", "2.0\n"}, [2]string{"data.tar", "text"}))
	f.Add(debiantest.Ar([2]string{"odd", "abc"}, [2]string{"data.tar.xz/", "x"}))
	f.Add([]byte(arMagic))
	f.Fuzz(func(t *testing.T, archive []byte) {
		name, data, err := member(archive, dataMember)
		if err == nil && (!strings.HasPrefix(name, dataMember) || !bytes.Contains(archive, data)) {
			t.Errorf("read member %q with %d bytes", name, len(data))
		}
	})
}
