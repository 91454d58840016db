// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pcn-linux/pcn/internal/vm/debian"
)

// compressions are the endings of archives of Linux, and the programs that decompress them.
var compressions = []struct{ ending, program string }{
	{".tar", ""}, {".tar.xz", "xz"}, {".tar.gz", "gzip"}, {".tar.zst", "zstd"},
}

// OpenSource returns a folder with Linux's source, unpacked below dir if what is named is none:
//
//   - a folder, which may be in git;
//   - an archive, such as linux-7.3.4.tar.xz, or a package linux-source-*.deb;
//   - a version of Debian, such as 7.2 or 7.2.12, which is fetched.
//
// The kernel that it returns says where the source is from.
func OpenSource(ctx context.Context, f debian.Fetcher, name, dir string) (string, Own, error) {
	k := Own{Source: name}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		if k.Source, err = filepath.Abs(name); err != nil {
			return "", k, err
		}
		k.Commit, err = gitCommit(ctx, name)
		return k.Source, k, err
	case err == nil:
		k.Source = filepath.Base(name)
		folder, err := openArchive(ctx, name, dir)
		return folder, k, err
	case strings.Contains(name, "/") || !debian.IsVersion(name):
		return "", k, fmt.Errorf("no Linux at %s: want a folder, an archive (.tar.xz), a package "+
			"linux-source-*.deb, or a version of Debian, such as %s", name, Tested().Version)
	}
	file, err := f.FetchSource(ctx, name)
	if err != nil {
		return "", k, err
	}
	k.Source = file.Name
	folder, err := openPackage(ctx, file.Data, dir)
	return folder, k, err
}

// openArchive unpacks a file with Linux's source below dir.
func openArchive(ctx context.Context, name, dir string) (string, error) {
	if strings.HasSuffix(name, ".deb") {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read Linux's source: %w", err)
		}
		return openPackage(ctx, data, dir)
	}
	for _, c := range compressions {
		if strings.HasSuffix(name, c.ending) {
			file, err := os.Open(name)
			if err != nil {
				return "", fmt.Errorf("read Linux's source: %w", err)
			}
			defer file.Close()
			return unpackBelow(ctx, dir, file, c.program)
		}
	}
	return "", fmt.Errorf("%s is no archive that can be read: want a name that ends in .tar, "+
		".tar.xz, .tar.gz, .tar.zst or .deb", name)
}

func openPackage(ctx context.Context, pack []byte, dir string) (string, error) {
	archive, err := debian.SourceArchive(pack)
	if err != nil {
		return "", err
	}
	defer archive.Close()
	return unpackBelow(ctx, dir, archive, "xz")
}

func unpackBelow(
	ctx context.Context, dir string, archive io.Reader, program string,
) (string, error) {
	folder := filepath.Join(dir, "source")
	return folder, unpack(ctx, folder, archive, program)
}
