// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package vm

import (
	"io"
	"os"
	"os/exec"
)

// runWithUs runs the command, on any CPU: there is no portable way to choose one. If this process
// is killed, the command stays; it ends with the guest's program.
func runWithUs(cmd *exec.Cmd, _ int) error { return cmd.Run() }

func newSharedFiles(write func(io.Writer) error) (*sharedFiles, error) { return namedFiles(write) }

// inheritedName returns the name of a file that a child has as a descriptor.
func inheritedName(f *os.File, _ int) string { return f.Name() }
