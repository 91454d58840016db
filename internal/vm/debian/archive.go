// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// A package is an ar archive, see ar(5): arMagic, then members, each with a header of arHeader
// bytes. A header has the name in its first 16 bytes and the size, in decimal digits, in the 10
// bytes from 48. Members begin at even offsets.
const (
	arMagic     = "!<arch>\n"
	arHeader    = 60
	arHeaderEnd = "`\n"
)

// dataMember is the member of a package with its files, without the ending of its compression.
const dataMember = "data.tar"

var errNoPackage = errors.New("not a Debian package: want an ar archive with a data.tar")

// member returns the name and the content of the first member whose name begins with prefix.
func member(archive []byte, prefix string) (name string, data []byte, err error) {
	rest, found := bytes.CutPrefix(archive, []byte(arMagic))
	if !found {
		return "", nil, errNoPackage
	}
	for len(rest) > 0 {
		if len(rest) < arHeader || string(rest[arHeader-2:arHeader]) != arHeaderEnd {
			return "", nil, fmt.Errorf("%w: a member's header is broken", errNoPackage)
		}
		header := string(rest[:arHeader])
		rest = rest[arHeader:]
		text := strings.TrimRight(header[48:58], " ")
		size, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return "", nil, fmt.Errorf("%w: a member has size %q", errNoPackage, text)
		}
		if size > uint64(len(rest)) {
			return "", nil, fmt.Errorf("%w: it ends within a member: want %d bytes, have %d",
				errNoPackage, size, len(rest))
		}
		// GNU's ar ends names with a slash, dpkg does not
		name := strings.TrimSuffix(strings.TrimRight(header[:16], " "), "/")
		if strings.HasPrefix(name, prefix) {
			return name, rest[:size], nil
		}
		rest = rest[min(size+size%2, uint64(len(rest))):]
	}
	return "", nil, fmt.Errorf("%w: it has no %s", errNoPackage, prefix)
}

// files returns the tar archive of a package's files.
func files(archive []byte) (io.ReadCloser, error) {
	name, data, err := member(archive, dataMember)
	if err != nil {
		return nil, err
	}
	return decompress(strings.TrimPrefix(name, dataMember), bytes.NewReader(data))
}

// decompress returns what r is the compressed form of, by the ending of its name.
func decompress(ending string, r io.Reader) (io.ReadCloser, error) {
	switch ending {
	case "":
		return io.NopCloser(r), nil
	case ".xz":
		d, err := xz.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		return io.NopCloser(d), nil
	case ".zst":
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		return d.IOReadCloser(), nil
	default:
		return nil, fmt.Errorf("unknown compression %q: want .xz, .zst or none", ending)
	}
}

// maxWindow bounds the memory of a zstd decoder. Boot images have windows of 128 MiB at most.
const maxWindow = 256 << 20

// readAll reads r to its end, and fails if it has more than limit bytes: a small archive may unpack
// to more than the machine's memory.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return data, nil
}

// sourcePrefix begins the path of Linux's source in its package.
const sourcePrefix = "usr/src/linux-source-"

// SourceArchive returns the archive of Linux's source, a .tar.xz, of a package linux-source-*.
func SourceArchive(pack []byte) (io.ReadCloser, error) {
	data, err := files(pack)
	if err != nil {
		return nil, fmt.Errorf("unpack Linux's source: %w", err)
	}
	for r := tar.NewReader(data); ; {
		header, err := r.Next()
		if err != nil {
			data.Close()
			return nil, fmt.Errorf("look for %s*.tar.xz in a package: %w", sourcePrefix, err)
		}
		name := path.Clean(header.Name)
		if strings.HasPrefix(name, sourcePrefix) && strings.HasSuffix(name, ".tar.xz") {
			return struct {
				io.Reader
				io.Closer
			}{r, data}, nil
		}
	}
}
