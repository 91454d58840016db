// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

// fakeQEMU puts a program into PATH in place of QEMU. It has the folder dir for firmware.
func fakeQEMU(t *testing.T, dir string) {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\ncase $1 in\n" +
		"--version) echo QEMU emulator version 9.9 ;;\n-L) echo /none; echo " + dir + " ;;\nesac\n"
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(bin, qemu), []byte(script), 0o755)))
	t.Setenv("PATH", bin)
}

func TestCheckQEMU(t *testing.T) {
	version, err := CheckQEMU(t.Context())
	qt.Assert(t, qt.IsNil(err), qt.Commentf("of this machine"))
	qt.Check(t, qt.Not(qt.Equals(version, "")))

	dir := t.TempDir()
	fakeQEMU(t, dir)
	for _, file := range firmware {
		_, err := CheckQEMU(t.Context())
		qt.Check(t, qt.ErrorMatches(err, "QEMU's "+file+" is in none of /none, "+dir+": run .*"))
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, file), nil, 0o644)))
	}
	version, err = CheckQEMU(t.Context())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(version, "9.9"))

	t.Setenv("PATH", dir)
	_, err = CheckQEMU(t.Context())
	qt.Check(t, qt.ErrorMatches(err, "qemu-system-x86_64 is not installed: run .*"))
}

func TestHowToInstall(t *testing.T) {
	const apt = "apt-get install --no-install-recommends qemu-system-x86 qemu-system-data"
	for _, test := range []struct{ goos, release, want string }{
		{"darwin", "", "run brew install qemu"},
		{"linux", "ID=debian\n",
			"run as root: " + apt},
		{"linux", "NAME=Mint\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n",
			"run as root: " + apt},
		{"linux", "ID=fedora\nVERSION_ID=44\n", "run as root: dnf install qemu-system-x86-core"},
		{"linux", "ID=arch", "run as root: pacman -S qemu-system-x86"},
		{"linux", "ID=alpine", "run as root: apk add qemu-system-x86_64"},
		{"linux", "ID=nixos\nID_LIKE=\"\"\n",
			"run as root the one that is for this system: " + apt +
				"; dnf install qemu-system-x86-core; " +
				"pacman -S qemu-system-x86; apk add qemu-system-x86_64"},
	} {
		qt.Check(t, qt.Equals(howToInstallOn(test.goos, test.release, qemu), test.want))
	}
	for _, s := range systems {
		for _, program := range []string{qemu, qemuARM64} {
			qt.Check(t, qt.Not(qt.Equals(s.packages[program], "")), qt.Commentf("%s", s.id))
		}
	}
}
