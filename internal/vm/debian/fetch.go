// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Mirror is where Debian's archive is; it has the newest versions only.
const Mirror = "http://deb.debian.org/debian"

// snapshots is where Debian's archive is as it was at some time.
const snapshots = "https://snapshot.debian.org/archive/debian/"

// maxPackage bounds a package's file; Debian's kernels have up to 100 MiB.
const maxPackage = 1 << 30

// Fetcher downloads packages. The zero value takes them from Debian.
type Fetcher struct {
	Mirrors  []string      // tried in order; nil: Mirror, then its snapshot
	Patience time.Duration // without a byte, before the next is tried; 0: 30 s

	Progress func(file string, done float64) // done is 0 to 1; may be nil
}

const defaultPatience = 30 * time.Second

var errStalled = errors.New("the server sent nothing for too long")

// Fetch downloads the packages of a release and verifies them. HTTP's proxies are those of the
// environment (http_proxy, https_proxy).
func (f Fetcher) Fetch(ctx context.Context, r Release) ([]File, error) {
	mirrors := f.Mirrors
	if mirrors == nil {
		mirrors = []string{Mirror, snapshots + r.Snapshot}
	}
	var all []File
	for _, p := range r.Packages {
		data, err := f.fetchFromAny(ctx, mirrors, p)
		if err != nil {
			return nil, fmt.Errorf("fetch %s:\n%w", p.file(), err)
		}
		all = append(all, File{Name: p.file(), Data: data})
	}
	return all, nil
}

// fetchFromAny downloads a package from the first mirror that has it. The error has that of each.
func (f Fetcher) fetchFromAny(ctx context.Context, mirrors []string, p Package) ([]byte, error) {
	var errs []error
	for _, mirror := range mirrors {
		url := mirror + "/" + p.Path
		data, err := f.get(ctx, url, p)
		if err == nil {
			return data, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		errs = append(errs, fmt.Errorf("  %s: %w", url, err))
	}
	return nil, errors.Join(errs...)
}

func (f Fetcher) get(ctx context.Context, url string, p Package) ([]byte, error) {
	patience := cmp.Or(f.Patience, defaultPatience)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(patience, func() { cancel(errStalled) })
	defer watchdog.Stop()
	data, err := f.download(ctx, url, p.file(), func() { watchdog.Reset(patience) })
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		return nil, fmt.Errorf("%w: %s", cause, patience)
	}
	if err != nil {
		return nil, err
	}
	return data, p.Verify(data)
}

// Verify fails if data is not the package.
func (p Package) Verify(data []byte) error {
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != p.SHA256 {
		return fmt.Errorf("it has SHA-256 %s: want %s", got, p.SHA256)
	}
	return nil
}

// download gets a file, and calls alive whenever some of it comes.
func (f Fetcher) download(ctx context.Context, url, file string, alive func()) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, errors.Unwrap(err) // a url.Error, which names the URL again
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	var done int64
	return readAll(readerFunc(func(b []byte) (int, error) {
		n, err := answer.Body.Read(b)
		alive()
		done += int64(n)
		if size := answer.ContentLength; f.Progress != nil && size > 0 { // else it is not known
			f.Progress(file, float64(done)/float64(size))
		}
		return n, err
	}), maxPackage)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// Read reads packages that are at hand.
func Read(paths []string) ([]File, error) {
	var all []File
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read a package: %w", err)
		}
		data, err := readAll(f, maxPackage)
		f.Close() // it was read only
		if err != nil {
			return nil, fmt.Errorf("read package %s: %w", path, err)
		}
		all = append(all, File{Name: filepath.Base(path), Data: data})
	}
	return all, nil
}
