// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pcn-linux/pcn/internal/vm"
)

// guestFolder contains cmd/pcn-guest if it was built before this program. The folder always exists,
// so that go build works without it.
//
//go:embed guest
var guestFolder embed.FS

const guestFile = "guest/pcn-guest"

// scripts/build.sh sets this with the linker, so that no program reads 11 MB to say it. It is empty
// in other builds, and without the file.
var guestSHA256 string

var errNoGuest = errors.New("this pcn was built without the program that its microVMs run: " +
	"run make build, and use bin/pcn")

// GuestSHA256 returns the hash of the program that microVMs run, in hexadecimal digits, as
// manifests have it. It fails if the program is not built in.
func GuestSHA256() (string, error) {
	if guestSHA256 != "" {
		return guestSHA256, nil
	}
	program, err := guestFolder.Open(guestFile)
	if err != nil {
		return "", orNoGuest(err)
	}
	defer program.Close()
	hash, err := vm.Hash(program)
	if err != nil {
		return "", fmt.Errorf("read the microVM's program: %w", err)
	}
	return hash, nil
}

// guestProgram returns the program that microVMs run, out of the folder.
func guestProgram(folder fs.FS) ([]byte, error) {
	program, err := fs.ReadFile(folder, guestFile)
	return program, orNoGuest(err)
}

// orNoGuest says what it means that the program is not there.
func orNoGuest(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNoGuest
	}
	return err
}
