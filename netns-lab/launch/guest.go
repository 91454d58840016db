// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
)

// guestFolder contains cmd/pcn-guest if it was built before this program. The folder always exists,
// so that go build works without it.
//
//go:embed guest
var guestFolder embed.FS

var errNoGuest = errors.New("this pcn was built without the program that its microVMs run: " +
	"run make build, and use bin/pcn")

// GuestSHA256 returns the hash of the program that microVMs run, in hexadecimal digits, as
// manifests have it. It fails if the program is not built in.
func GuestSHA256() (string, error) {
	program, err := guestProgram(guestFolder)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:]), nil
}

// guestProgram returns the program that microVMs run, out of the folder.
func guestProgram(folder fs.FS) ([]byte, error) {
	program, err := fs.ReadFile(folder, "guest/pcn-guest")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoGuest
	}
	return program, err
}
