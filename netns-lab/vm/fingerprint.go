// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// Machine is what all microVMs of a kernel have in common: this program, the kernel and QEMU.
type Machine struct{ sum []byte }

// NewMachine reads what the microVMs have in common.
func NewMachine(ctx context.Context, kernel Kernel) (Machine, error) {
	if err := HaveQEMU(); err != nil {
		return Machine{}, err
	}
	version, err := qemuVersion(ctx)
	if err != nil {
		return Machine{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return Machine{}, fmt.Errorf("find this program's file: %w", err)
	}
	modules, err := filepath.Glob(filepath.Join(kernel.Modules, "*.ko")) // sorted
	if err != nil {
		return Machine{}, fmt.Errorf("find kernel modules: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", version)
	for _, path := range append([]string{exe, kernel.Image}, modules...) {
		if err := addFile(h, path); err != nil {
			return Machine{}, err
		}
	}
	return Machine{h.Sum(nil)}, nil
}

// addFile adds the name of a file and the hash of what is in it.
func addFile(h hash.Hash, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("take a fingerprint: %w", err)
	}
	defer f.Close()
	of := sha256.New()
	if _, err := io.Copy(of, f); err != nil {
		return fmt.Errorf("take a fingerprint of %s: %w", path, err)
	}
	fmt.Fprintf(h, "%q %x\n", filepath.Base(path), of.Sum(nil))
	return nil
}

// Fingerprint is a SHA-256, in hexadecimal, of all that decides what a deterministic microVM of the machine does. Paths of
// the host are not in it, and neither is the CPU.
func (m Machine) Fingerprint(c Config) (string, error) {
	c.Kernel = Kernel{}
	text, err := json.Marshal([]any{
		m.sum, arguments(c, counted), c.Files, job{Args: c.Args, Env: c.Env, Dir: c.Dir, Modules: c.Modules},
	})
	if err != nil {
		return "", fmt.Errorf("take a fingerprint: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
