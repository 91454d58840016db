// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package vm

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
)

// runWithUs runs the command, on any CPU: there is no portable way to choose one. If this process
// is killed, the command stays; it ends with the guest's program.
func runWithUs(cmd *exec.Cmd, _ int, _ func(pid int)) error { return cmd.Run() }

// watchSpin watches nothing: the time of machines stands still on Linux only.
func watchSpin(context.Context, int, func()) error { return nil }

func newSharedFiles(write func(io.Writer) error) (*sharedFiles, error) { return namedFiles(write) }

// inheritedName returns the name of a file that a child has as a descriptor.
func inheritedName(f *os.File, _ int) string { return f.Name() }

// Hold fails: machines in virtual time run on Linux only.
func Hold(int, bool) error {
	return errors.New("a microVM can be stopped and go on only on Linux")
}
