// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pcn-linux/pcn/config/lazy"
)

// suites have packages of Linux's source, the newest first.
var suites = []string{"trixie-backports", "trixie", "bookworm-backports"}

// versions are those that are asked for: of Linux, or its beginning.
var versions = lazy.Regexp(`^[0-9]+\.[0-9]+(\.[0-9]+)?$`)

// IsVersion reports whether a text may be a version of Linux, such as 7.2 or 7.2.12.
func IsVersion(text string) bool { return versions().MatchString(text) }

// FetchSource downloads the package of Linux's source of a version, such as 7.2.12, or the newest
// that begins with it, such as 7.2. The package's hash is that of the index, which comes from the
// same mirror.
func (f Fetcher) FetchSource(ctx context.Context, version string) (File, error) {
	mirror := Mirror
	if len(f.Mirrors) > 0 {
		mirror = f.Mirrors[0]
	}
	var have []string
	for _, suite := range suites {
		url := fmt.Sprintf("%s/dists/%s/main/binary-amd64/Packages.xz", mirror, suite)
		index, err := f.download(ctx, url, suite, func() {})
		if err != nil {
			return File{}, fmt.Errorf("fetch the list of packages: %s: %w", url, err)
		}
		sources, err := readIndex(index)
		if err != nil {
			return File{}, fmt.Errorf("read the list of packages: %s: %w", url, err)
		}
		if s, found := newest(sources, version); found {
			data, err := f.fetchFromAny(ctx, []string{mirror}, s.Package)
			if err != nil {
				return File{}, fmt.Errorf("fetch %s:\n%w", s.file(), err)
			}
			return File{Name: s.file(), Data: data}, nil
		}
		for _, s := range sources {
			have = append(have, s.linux)
		}
	}
	return File{}, fmt.Errorf("no source of Linux %s in Debian now: it has %s", version,
		strings.Join(have, ", "))
}

// source is a package of Linux's source.
type source struct {
	linux string // its version, of Linux
	Package
}

// newest returns the newest source of a version.
func newest(sources []source, version string) (last source, found bool) {
	for _, s := range sources {
		if s.linux != version && !strings.HasPrefix(s.linux, version+".") {
			continue
		}
		if !found || CompareVersions(s.linux, last.linux) > 0 {
			last, found = s, true
		}
	}
	return last, found
}

// readIndex returns the packages linux-source-* of an index, a Packages.xz.
func readIndex(index []byte) ([]source, error) {
	r, err := decompress(".xz", bytes.NewReader(index))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []source
	var s source
	isSource := false
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		field, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch field {
		case "Package":
			isSource = strings.HasPrefix(value, "linux-source-")
		case "Version":
			s.linux, _, _ = strings.Cut(value, "-")
		case "Filename":
			s.Path = value
		case "SHA256":
			s.SHA256 = value
		case "":
			if isSource {
				all = append(all, s)
			}
			s, isSource = source{}, false
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
