// SPDX-License-Identifier: Apache-2.0

// Package bpffs looks for the BPF file system, and mounts it.
package bpffs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host/internal/rights"
)

// DefaultRoot is the folder of pins.
const DefaultRoot = "/sys/fs/bpf/pcn"

// netnsFolder has the network namespaces that ip netns made.
const netnsFolder = "/run/netns"

// MountCommand mounts a BPF file system that only root may use. Without a mode all users may.
func MountCommand(dir string) string { return "mount -t bpf -o mode=0700 bpf " + dir }

// Have mounts a BPF file system at dir, unless one is there.
func Have(dir string) error {
	var fsinfo unix.Statfs_t
	err := unix.Statfs(dir, &fsinfo)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s: want a BPF file system there: containers have none "+
			"unless they are given one, such as by systemd-nspawn --bind=%s: %w", dir, dir, err)
	}
	if err != nil {
		return fmt.Errorf("look for the BPF file system: %s: %w", dir, err)
	}
	if fsinfo.Type == unix.BPF_FS_MAGIC {
		return nil
	}
	if err := unix.Mount(source, dir, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		"mode=0700"); err != nil {
		return rights.Explain(fmt.Errorf("no BPF file system at %s, and it can't be mounted (%w): "+
			"%s", dir, err, MountCommand(dir)), rights.Mounting)
	}
	return nil
}

// source marks what Have mounted: the kernel shows it, and does not use it.
const source = "pcn"

// Drop unmounts the BPF file system at dir if Have mounted it and nothing is pinned in it. The
// caller holds the lock of dir.
func Drop(dir string) error {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return fmt.Errorf("look for the BPF file system: %w", err)
	}
	if !slices.ContainsFunc(mounts, func(m *procfs.MountInfo) bool {
		return m.MountPoint == dir && m.FSType == "bpf" && m.Source == source
	}) {
		return nil
	}
	pins, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look into the BPF file system: %w", err)
	}
	if slices.ContainsFunc(pins, func(e fs.DirEntry) bool { return !isOfKernel(e.Name()) }) {
		return nil
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil { // the lock has it open
		return fmt.Errorf("unmount the BPF file system %s, which pcn mounted: %w", dir, err)
	}
	return nil
}

// isOfKernel tells the files that a kernel with CONFIG_BPF_PRELOAD makes in each BPF file system.
func isOfKernel(name string) bool { return name == "maps.debug" || name == "progs.debug" }

// CheckMount fails if the BPF file system would go with this process's mounts: ip netns exec mounts
// a /sys of its own, so what is pinned there is gone when it ends.
func CheckMount(root string) error {
	if root != DefaultRoot {
		return nil // someone mounted it for us
	}
	parent := filepath.Dir(root)
	var mine, first unix.Stat_t
	var fsinfo unix.Statfs_t
	err := errors.Join(unix.Stat(parent, &mine), unix.Statfs(parent, &fsinfo))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing can be pinned there, or have been
	}
	if err != nil {
		return fmt.Errorf("look for the BPF file system: %s: %w", parent, err)
	}
	isOwn := ownMounts()
	if fsinfo.Type == unix.BPF_FS_MAGIC {
		// Services have mounts of their own too, but with the BPF file system of process 1.
		if unix.Stat("/proc/1/root"+parent, &first) == nil {
			isOwn = first.Dev != mine.Dev
		}
	}
	if !isOwn {
		return nil
	}
	return fmt.Errorf("the mounts of this process are its own, so what is pinned in %s would be "+
		"gone with it: ip netns exec does that; run it outside, with --netns NAME, or with "+
		"nsenter --net=/run/netns/NAME", parent)
}

// ownMounts reports whether this process has other mounts than process 1. Where that may not be
// looked at, it knows those of ip netns exec only.
func ownMounts() bool {
	mine, err := os.Readlink("/proc/self/ns/mnt")
	first, firstErr := os.Readlink("/proc/1/ns/mnt")
	if err == nil && firstErr == nil {
		return mine != first
	}
	mounts, err := procfs.GetMounts()
	return err == nil && slices.ContainsFunc(mounts, func(m *procfs.MountInfo) bool {
		return IsOfNetnsExec(m, netnsFolder)
	})
}

// IsOfNetnsExec reports whether ip netns exec made a mount: that of /sys has the name of the
// network namespace for its source, which has a file in folder.
func IsOfNetnsExec(m *procfs.MountInfo, folder string) bool {
	name := m.Source
	if m.MountPoint != "/sys" || m.FSType != "sysfs" || name == "" || strings.Contains(name, "/") {
		return false
	}
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}
