// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package vm

import (
	"errors"
	"fmt"
	"os"
)

// newState returns an empty state in a temporary file.
func newState(memory int64) (*machineState, error) {
	f, err := os.CreateTemp("", "pcn-vm-")
	if err != nil {
		return nil, fmt.Errorf("make the microVM's memory: %w", err)
	}
	s := &machineState{file: f, memory: memory, temporary: true}
	if err := f.Truncate(memory); err != nil {
		s.close()
		return nil, fmt.Errorf("make the microVM's memory: %w", err)
	}
	return s, nil
}

// openState returns no state: none is kept here.
func openState(string, int64) *machineState { return nil }

// keepState fails: where data are in a sparse file is found in another way on each system.
func keepState(*machineState, string) error { return errors.ErrUnsupported }
