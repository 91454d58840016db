// SPDX-License-Identifier: Apache-2.0

package bpffs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/prometheus/procfs"

	"github.com/pcn-linux/pcn/host/internal/bpffs"
)

// Where process 1 may not be looked at, the mount of /sys tells what ip netns exec does.
func TestMountOfNetnsExec(t *testing.T) {
	folder := t.TempDir()
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(folder, "blue"), nil, 0o600)))
	for source, want := range map[string]bool{
		"blue": true, "red": false, "sysfs": false, "": false, "/": false, "../blue": false,
	} {
		m := procfs.MountInfo{MountPoint: "/sys", FSType: "sysfs", Source: source}
		qt.Check(t, qt.Equals(bpffs.IsOfNetnsExec(&m, folder), want), qt.Commentf("%q", source))
		m.MountPoint = "/mnt"
		qt.Check(t, qt.IsFalse(bpffs.IsOfNetnsExec(&m, folder)))
	}
}
