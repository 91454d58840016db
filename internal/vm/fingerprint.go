// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pcn-linux/pcn/internal/vm/guest"
)

// Machine identifies what all microVMs of a guest program and a kernel share. Hashes are in
// hexadecimal.
type Machine struct {
	GuestSHA256  string
	KernelSHA256 string // of the image; the fingerprint also covers its modules
	QEMU         string // version; "" if the kernel is User Mode Linux
	modules      [][2]string
}

// NewMachine hashes what the microVMs share.
func NewMachine(ctx context.Context, kernel Kernel, program []byte) (Machine, error) {
	sum := sha256.Sum256(program)
	m := Machine{GuestSHA256: hex.EncodeToString(sum[:])}
	var err error
	if m.KernelSHA256, err = HashFile(kernel.Image); err != nil || kernel.uml {
		return m, err
	}
	if err := haveQEMU(kernel.qemu()); err != nil {
		return Machine{}, err
	}
	if m.QEMU, err = qemuVersion(ctx, kernel.qemu()); err != nil {
		return Machine{}, err
	}
	modules, err := filepath.Glob(filepath.Join(kernel.Modules, "*.ko")) // sorted
	if err != nil {
		return Machine{}, fmt.Errorf("find kernel modules: %w", err)
	}
	for _, path := range modules {
		hash, err := HashFile(path)
		if err != nil {
			return Machine{}, err
		}
		m.modules = append(m.modules, [2]string{filepath.Base(path), hash})
	}
	return m, nil
}

// HashFile returns the SHA-256 of a file in hexadecimal.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("compute the fingerprint: %w", err)
	}
	defer f.Close()
	hash, err := Hash(f)
	if err != nil {
		return "", fmt.Errorf("compute the fingerprint of %s: %w", path, err)
	}
	return hash, nil
}

// Hash returns the SHA-256 of all that a reader has, in hexadecimal.
func Hash(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Fingerprint returns a SHA-256, in hexadecimal, of everything that determines what a deterministic
// microVM does. It covers neither paths of the host nor the CPU.
func (m Machine) Fingerprint(c Config) (string, error) {
	arguments := arguments(c, counted, paths{})
	if m.QEMU == "" {
		arguments = umlMachine{c}.parameters()
	}
	text, err := json.Marshal([]any{
		m.GuestSHA256, m.KernelSHA256, m.QEMU, m.modules, arguments, c.Files,
		guest.Job{Args: c.Args, Env: c.Env, Dir: c.Dir, Modules: c.Modules},
	})
	if err != nil {
		return "", fmt.Errorf("compute the fingerprint: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
