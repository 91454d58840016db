// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/ulikunitz/xz"
)

// serveSources serves an archive in which each suite has these versions of Linux's source.
func serveSources(t *testing.T, bySuite map[string][]string) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		suite, isIndex := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/dists/"),
			"/main/binary-amd64/Packages.xz")
		if !isIndex {
			fmt.Fprint(w, r.URL.Path)
			return
		}
		var index bytes.Buffer
		for _, v := range bySuite[suite] {
			path := "pool/linux-source-" + v + ".deb"
			sum := sha256.Sum256([]byte("/" + path))
			fmt.Fprintf(&index, "Package: linux-source-%.3s\nVersion: %s\n", v, v)
			fmt.Fprintf(&index, "Filename: %s\nSHA256: %s\n\n",
				path, hex.EncodeToString(sum[:]))
		}
		fmt.Fprint(&index, "Package: linux-perf\nVersion: 7.3.9-1\nFilename: x\nSHA256: 0\n")
		c, err := xz.NewWriter(w)
		qt.Check(t, qt.IsNil(err))
		_, err = c.Write(index.Bytes())
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.IsNil(c.Close()))
	})
}

// The newest version that begins as asked for is fetched, whatever the index's order.
func TestFetchSource(t *testing.T) {
	f := Fetcher{Mirrors: []string{serveSources(t, map[string][]string{
		"trixie-backports": {"7.2.11-1~bpo13+1", "7.2.6-1~bpo13+1", "7.3.4-1~bpo13+1"},
		"trixie":           {"6.12.107-1"},
	})}}
	for version, want := range map[string]string{
		"7.2":      "linux-source-7.2.11-1~bpo13+1.deb",
		"7.2.6":    "linux-source-7.2.6-1~bpo13+1.deb",
		"6.12.107": "linux-source-6.12.107-1.deb",
	} {
		file, err := f.FetchSource(t.Context(), version)
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(file.Name, want))
		qt.Check(t, qt.Equals(string(file.Data), "/pool/"+want))
	}
	for _, version := range []string{"7.1", "7.2.1", "7.3.9"} {
		_, err := f.FetchSource(t.Context(), version)
		qt.Check(t, qt.ErrorMatches(err, `no source of Linux `+version+
			` in Debian now: it has 7\.2\.11, 7\.2\.6, 7\.3\.4, 6\.12\.107`))
	}
}

func TestIsVersion(t *testing.T) {
	for text, want := range map[string]bool{
		"7.2": true, "7.2.12": true,
		"7": false, "7.2.": false, "v7.2": false, "mine": false, "": false,
	} {
		qt.Check(t, qt.Equals(IsVersion(text), want), qt.Commentf("%q", text))
	}
}
