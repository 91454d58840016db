// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// haveQEMU fails if a program of QEMU is not installed. The error says how to install it.
func haveQEMU(program string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is not installed: %s", program, howToInstall(program))
	}
	return nil
}

// CheckQEMU returns the version of QEMU. It fails if QEMU is not installed, or lacks a file that
// a microVM loads: some distributions have these in packages of their own.
func CheckQEMU(ctx context.Context) (version string, err error) {
	if err := haveQEMU(qemu); err != nil {
		return "", err
	}
	if version, err = qemuVersion(ctx, qemu); err != nil {
		return "", err
	}
	// it prints its folders of firmware, one a line
	out, err := exec.CommandContext(ctx, qemu, "-L", "help").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its folders of firmware: %w", qemu, err)
	}
	folders := strings.Fields(string(out))
	for _, file := range firmware {
		if !slices.ContainsFunc(folders, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, file))
			return err == nil
		}) {
			return "", fmt.Errorf("QEMU's %s is in none of %s: %s", file,
				strings.Join(folders, ", "), howToInstall(qemu))
		}
	}
	return version, nil
}

// firmware are the files that QEMU opens for a microVM of amd64: the BIOS, see pcFlags, and ROMs
// for interrupts and for the kernel.
var firmware = []string{"qboot.rom", "kvmvapic.bin", "pvh.bin"}

// system is a kind of operating system.
type system struct {
	id       string // as ID or ID_LIKE of os-release(5) has it
	install  string // the command, for root
	packages map[string]string
}

// systems are those for which we know the packages of QEMU's programs.
var systems = []system{
	{"debian", "apt-get install --no-install-recommends", map[string]string{
		qemu: "qemu-system-x86 qemu-system-data", qemuARM64: "qemu-system-arm qemu-system-data",
	}},
	{"fedora", "dnf install", map[string]string{
		qemu: "qemu-system-x86-core", qemuARM64: "qemu-system-aarch64-core",
	}},
	{"arch", "pacman -S", map[string]string{
		qemu: "qemu-system-x86", qemuARM64: "qemu-system-aarch64",
	}},
	{"alpine", "apk add", map[string]string{
		qemu: "qemu-system-x86_64", qemuARM64: "qemu-system-aarch64",
	}},
}

// howToInstall says how a program of QEMU is installed on this system.
func howToInstall(program string) string {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		release = nil // then it says how for each system
	}
	return howToInstallOn(runtime.GOOS, string(release), program)
}

func howToInstallOn(goos, osRelease, program string) string {
	if goos == "darwin" {
		return "run brew install qemu"
	}
	var all []string
	ids := releaseIDs(osRelease)
	for _, s := range systems {
		command := s.install + " " + s.packages[program]
		if slices.Contains(ids, s.id) {
			return "run as root: " + command
		}
		all = append(all, command)
	}
	return "run as root the one that is for this system: " + strings.Join(all, "; ")
}

// releaseIDs returns the words of ID and ID_LIKE in a text of os-release(5).
func releaseIDs(text string) []string {
	var ids []string
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key == "ID" || key == "ID_LIKE" {
			ids = append(ids, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	return ids
}
