// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/debian/debiantest"
)

func TestUnpackImage(t *testing.T) {
	text := strings.Repeat("a kernel of some length\n", 1<<16)
	for _, ending := range []string{".zst", ".xz", ".lz4"} {
		kernel, arm64, err := unpackImage(debiantest.X86(t, ending, text))
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", ending))
		qt.Check(t, qt.IsFalse(arm64))
		qt.Check(t, qt.IsTrue(string(kernel) == text), qt.Commentf("%s", ending))
	}
	image := debiantest.ARM64()
	kernel, arm64, err := unpackImage(image)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(arm64))
	qt.Check(t, qt.DeepEquals(kernel, image))
}

// Four sectors of set-up are written as 0.
func TestSetupSectorsZero(t *testing.T) {
	image := debiantest.X86(t, ".zst", "kernel")
	image[x86SetupSectors] = 0
	moved := binary.LittleEndian.Uint32(image[x86PayloadOffset:])
	binary.LittleEndian.PutUint32(image[x86PayloadOffset:], moved-2*sector)
	_, _, err := unpackImage(image)
	qt.Check(t, qt.ErrorMatches(err, "the boot image is cut off: .*"), qt.Commentf("before 0"))

	image = append(make([]byte, 2*sector), image...)
	copy(image, image[2*sector:][:x86HeaderEnd])
	binary.LittleEndian.PutUint32(image[x86PayloadOffset:], moved)
	kernel, _, err := unpackImage(image)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(kernel), "kernel"))
}

func TestBrokenImages(t *testing.T) {
	for name, broken := range map[string]struct {
		change func(image []byte) []byte
		want   string
	}{
		"text":   {func([]byte) []byte { return []byte("text") }, "not a boot image: want .*"},
		"old":    {put16(x86Version, 0x207), "boot image of protocol 2.07: want 2.08 or later"},
		"cut":    {func(b []byte) []byte { return b[:len(b)-20] }, "the boot image is cut off: .*"},
		"short":  {put32(x86PayloadLength, 7), "the boot image is cut off: .*"},
		"beyond": {put32(x86PayloadOffset, 0xffffffff), "the boot image is cut off: .*"},
		"packed": {put32(x86PayloadOffset, 101), "unknown compression 0x.* of the boot image: .*"},
		"stream": {func(b []byte) []byte {
			clear(b[debiantest.X86Payload+4:])
			return b
		}, "unpack the boot image: .*"},
		"size": {func(b []byte) []byte {
			b[len(b)-len(debiantest.Signature)-4]++
			return b
		}, "the boot image unpacks to 6 bytes: want 7"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := unpackImage(broken.change(debiantest.X86(t, ".zst", "kernel")))
			qt.Check(t, qt.ErrorMatches(err, broken.want))
		})
	}
}

func put16(at int, value uint16) func([]byte) []byte {
	return func(b []byte) []byte {
		binary.LittleEndian.PutUint16(b[at:], value)
		return b
	}
}

func put32(at int, value uint32) func([]byte) []byte {
	return func(b []byte) []byte {
		binary.LittleEndian.PutUint32(b[at:], value)
		return b
	}
}

func FuzzUnpackImage(f *testing.F) {
	for _, ending := range []string{".zst", ".xz", ".lz4"} {
		f.Add(debiantest.X86(f, ending, "the kernel"))
	}
	f.Add(debiantest.ARM64())
	f.Fuzz(func(t *testing.T, image []byte) {
		kernel, arm64, err := unpackImage(image)
		if err != nil && kernel != nil || arm64 && len(kernel) != len(image) {
			t.Errorf("unpacked %d bytes to %d, %v", len(image), len(kernel), err)
		}
	})
}
