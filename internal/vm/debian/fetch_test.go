// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

const someText = "the bytes of a package"

// patient is for servers that answer, however busy this machine is.
const patient = time.Hour

func someRelease() Release {
	sum := sha256.Sum256([]byte(someText))
	return Release{Packages: []Package{{Path: "pool/x.deb", SHA256: hex.EncodeToString(sum[:])}}}
}

// serve returns the URL of a server.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func serveRight(t *testing.T) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pool/x.deb" {
			http.NotFound(w, r)
			return
		}
		_, err := w.Write([]byte(someText))
		qt.Check(t, qt.IsNil(err))
	})
}

// serveWrong returns servers that fail, each with what the error says.
func serveWrong(t *testing.T) map[string]string {
	t.Helper()
	const gone = "http://127.0.0.1:1" // no server gets this port by chance
	return map[string]string{
		serve(t, http.NotFound): "404 Not Found",
		serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write([]byte("other bytes"))
			qt.Check(t, qt.IsNil(err))
		}): "it has SHA-256 [0-9a-f]{64}: want [0-9a-f]{64}",
		serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, err := w.Write([]byte(someText))
			qt.Check(t, qt.IsNil(err))
		}): "unexpected EOF",
		gone: "dial tcp .*: connect: connection refused",
	}
}

func TestFetch(t *testing.T) {
	right := serveRight(t)
	var last float64
	f := Fetcher{Mirrors: []string{right}, Patience: patient}
	f.Progress = func(file string, done float64) {
		qt.Check(t, qt.Equals(file, "x.deb"))
		last = done
	}
	got, err := f.Fetch(t.Context(), someRelease())
	qt.Assert(t, qt.IsNil(err))
	want := []File{{Name: "x.deb", Data: []byte(someText)}}
	qt.Check(t, qt.DeepEquals(got, want))
	qt.Check(t, qt.Equals(last, 1))

	// whatever is wrong with the mirror, the snapshot is taken
	for url := range serveWrong(t) {
		f := Fetcher{Mirrors: []string{url, right}, Patience: patient}
		got, err := f.Fetch(t.Context(), someRelease())
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(got, want))
	}
}

func TestFetchErrors(t *testing.T) {
	for url, message := range serveWrong(t) {
		f := Fetcher{Mirrors: []string{url}, Patience: patient}
		_, err := f.Fetch(t.Context(), someRelease())
		qt.Check(t, qt.ErrorMatches(err, `fetch x.deb:\n  `+url+`/pool/x.deb: `+message))
	}
	f := Fetcher{Mirrors: []string{"http://a b"}}
	_, err := f.Fetch(t.Context(), someRelease())
	qt.Check(t, qt.ErrorMatches(err, `(?s)fetch x.deb:\n.*invalid character " " in host name`))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Fetcher{}.Fetch(ended, someRelease())
	qt.Check(t, qt.ErrorIs(err, context.Canceled))
}

// A server that stops sending does not hold up the set-up.
func TestStall(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	f := Fetcher{Mirrors: []string{url}, Patience: 50 * time.Millisecond}
	_, err := f.Fetch(t.Context(), someRelease())
	qt.Check(t, qt.ErrorIs(err, errStalled))
	qt.Check(t, qt.ErrorMatches(err, `(?s).*the server sent nothing for too long: 50ms`))
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.deb")
	_, err := Read([]string{file})
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(someText), 0o644)))
	got, err := Read([]string{file})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(got, []File{{Name: "x.deb", Data: []byte(someText)}}))
}
