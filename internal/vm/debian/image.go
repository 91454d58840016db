// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/pierrec/lz4/v4"
)

// Fields of a boot image's header: Documentation/arch/x86/boot.rst and arch/arm64/booting.rst.
const (
	x86SetupSectors  = 0x1f1 // 1 byte; 0 means 4
	x86Magic         = 0x202
	x86Version       = 0x206 // 2 bytes
	x86PayloadOffset = 0x248 // 4 bytes, from the end of the sectors of set-up
	x86PayloadLength = 0x24c // 4 bytes
	x86HeaderEnd     = 0x250

	x86PayloadVersion = 0x208 // from here on there is a payload
	sector            = 512

	arm64Magic     = 56
	arm64HeaderEnd = 64
)

// maxImage bounds an unpacked kernel; Debian's are 50 to 60 MiB.
const maxImage = 512 << 20

var errNoImage = errors.New("not a boot image: want Linux's for x86 or arm64")

// unpackImage returns the kernel of a boot image, and whether it is one for arm64.
func unpackImage(boot []byte) (kernel []byte, arm64 bool, err error) {
	switch {
	case len(boot) >= arm64HeaderEnd && string(boot[arm64Magic:][:4]) == "ARM\x64":
		return boot, true, nil // it is not compressed
	case len(boot) >= x86HeaderEnd && string(boot[x86Magic:][:4]) == "HdrS":
		kernel, err = unpackX86(boot)
		return kernel, false, err
	default:
		return nil, false, errNoImage
	}
}

// unpackX86 returns the kernel of a boot image for x86. The payload is the compressed kernel and
// then, as 4 bytes, its size.
func unpackX86(boot []byte) ([]byte, error) {
	if v := binary.LittleEndian.Uint16(boot[x86Version:]); v < x86PayloadVersion {
		return nil, fmt.Errorf("boot image of protocol %d.%02d: want 2.08 or later", v>>8, v&0xff)
	}
	sectors := cmp.Or(uint64(boot[x86SetupSectors]), 4)
	start := (sectors+1)*sector + uint64(binary.LittleEndian.Uint32(boot[x86PayloadOffset:]))
	length := uint64(binary.LittleEndian.Uint32(boot[x86PayloadLength:]))
	if length < 8 || start+length > uint64(len(boot)) {
		return nil, fmt.Errorf("the boot image is cut off: its kernel ends at byte %d of %d",
			start+length, len(boot))
	}
	payload := boot[start:][:length-4]
	want := binary.LittleEndian.Uint32(boot[start+length-4:])
	stream, err := openPayload(payload)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	kernel, err := readAll(stream, maxImage)
	if err != nil {
		return nil, fmt.Errorf("unpack the boot image: %w", err)
	}
	if uint64(len(kernel)) != uint64(want) {
		return nil, fmt.Errorf("the boot image unpacks to %d bytes: want %d", len(kernel), want)
	}
	return kernel, nil
}

// openPayload returns a reader of the kernel, by the first bytes of its compressed form.
func openPayload(payload []byte) (io.ReadCloser, error) {
	r := bytes.NewReader(payload)
	switch magic := binary.LittleEndian.Uint32(payload); magic {
	case 0xfd2fb528:
		return decompress(".zst", r)
	case 0x587a37fd:
		return decompress(".xz", r)
	case 0x184c2102: // lz4's older format
		return io.NopCloser(lz4.NewReader(r)), nil
	default:
		return nil, fmt.Errorf("unknown compression %#08x of the boot image: want zstd, xz or lz4",
			magic)
	}
}
