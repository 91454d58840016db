// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/job"
)

// TestAwaitLatest: it returns when the link leads to the line or to the end.
func TestAwaitLatest(t *testing.T) {
	dir := t.TempDir()
	for _, to := range []string{"7", "end"} {
		link := filepath.Join(dir, job.LatestLine)
		qt.Assert(t, qt.IsNil(os.Symlink(to, link)))
		end, err := awaitLatest(dir, "7", "end")
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(end, to == "end"))
		qt.Assert(t, qt.IsNil(os.Remove(link)))
	}
	_, err := awaitLatest(dir, "7", "end")
	qt.Check(t, qt.ErrorMatches(err,
		"look for the next line: open .*/latest: no such file or directory"))
}

// TestReadLinkLeavesNoTrace: a machine that is kept waiting for long, and looks a hundred thousand
// times, is as one that has its line at once.
func TestReadLinkLeavesNoTrace(t *testing.T) {
	if !virtualTime(t) {
		t.Skip("the clock goes on here")
	}
	link := filepath.Join(t.TempDir(), "link")
	qt.Assert(t, qt.IsNil(os.Symlink("none", link)))
	fd, err := unix.Open(link, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	qt.Assert(t, qt.IsNil(err))
	defer unix.Close(fd)
	var itself byte
	buffer := make([]byte, 1<<8)
	beganNs := monotonicNs()
	const looks = 150_000
	allocations := testing.AllocsPerRun(looks, func() {
		if target, errno := readLink(fd, &itself, buffer); errno != 0 || string(target) != "none" {
			t.Fatal(string(target), errno)
		}
	})
	qt.Check(t, qt.Equals(allocations, 0))
	qt.Check(t, qt.Equals(monotonicNs(), beganNs))
}
