// SPDX-License-Identifier: Apache-2.0

// Package debiantest makes small packages of Debian, and kernels in them, for tests.
package debiantest

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
)

// Image is the content of the kernel in [Kernel].
const Image = "the kernel"

// Kernel returns the files of a kernel's package, as Debian made it before it split them.
func Kernel(t testing.TB, version string) map[string]string {
	t.Helper()
	return map[string]string{
		"boot/vmlinuz-" + version:                                string(X86(t, ".zst", Image)),
		"boot/config-" + version:                                 "CONFIG_NET=y\n",
		"lib/modules/" + version + "/kernel/drivers/net/veth.ko": "veth",
	}
}

// Ar returns an ar archive of members, given as name and content.
func Ar(members ...[2]string) []byte {
	out := bytes.NewBufferString("!<arch>\n")
	for _, m := range members {
		fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8s%-10d%s", m[0], 0, 0, 0, "100644", len(m[1]), "`\n")
		out.WriteString(m[1])
		if len(m[1])%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// Package returns a package with files, given by their paths.
func Package(t testing.TB, files map[string]string) []byte {
	t.Helper()
	return Ar([2]string{"debian-binary", "2.0\n"}, [2]string{"control.tar.xz", "odd"},
		[2]string{"data.tar.xz", Compress(t, ".xz", makeTar(t, files))})
}

func makeTar(t testing.TB, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&tar.Header{Name: "./boot/", Typeflag: tar.TypeDir})
	qt.Assert(t, qt.IsNil(err))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := w.WriteHeader(&tar.Header{
			Name: "./" + name, Typeflag: tar.TypeReg, Size: int64(len(files[name])),
		})
		qt.Assert(t, qt.IsNil(err))
		_, err = io.WriteString(w, files[name])
		qt.Assert(t, qt.IsNil(err))
	}
	qt.Assert(t, qt.IsNil(w.Close()))
	return out.String()
}

// Compress returns the text in a compressed form, by the ending of its name.
func Compress(t testing.TB, ending, text string) string {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch ending {
	case ".xz":
		w, err = xz.NewWriter(&out)
	case ".zst":
		w, err = zstd.NewWriter(&out)
	case ".lz4":
		l := lz4.NewWriter(&out)
		w, err = l, l.Apply(lz4.LegacyOption(true))
	default:
		return text
	}
	qt.Assert(t, qt.IsNil(err))
	_, err = io.WriteString(w, text)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(w.Close()))
	return out.String()
}

// Signature is the last bytes of the boot images of [X86], as those of secure boot.
const Signature = "signature"

// X86Payload is where the compressed kernel begins in the boot images of [X86].
const X86Payload = 3*512 + 100

// X86 returns a boot image with a kernel, compressed as the ending says.
func X86(t testing.TB, ending, kernel string) []byte {
	t.Helper()
	payload := Compress(t, ending, kernel)
	image := make([]byte, X86Payload)
	image[0x1f1] = 2 // sectors of set-up
	copy(image[0x202:], "HdrS")
	binary.LittleEndian.PutUint16(image[0x206:], 0x20f) // protocol
	binary.LittleEndian.PutUint32(image[0x248:], X86Payload-3*512)
	binary.LittleEndian.PutUint32(image[0x24c:], uint32(len(payload)+4))
	image = append(image, payload...)
	image = binary.LittleEndian.AppendUint32(image, uint32(len(kernel)))
	return append(image, Signature...)
}

// ARM64 returns a boot image for arm64.
func ARM64() []byte {
	image := make([]byte, 128)
	copy(image[56:], "ARM\x64")
	return image
}
