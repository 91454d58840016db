// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/uml"
)

// Check is the result of checking one requirement of the program on this machine.
type Check struct {
	What string
	For  string // what needs it
	Err  error  // nil if it is met
	Fix  string // the command that meets it
}

// What a check is for.
const (
	ForVM       = "microVM"
	ForNative   = "--native"
	ForCaptures = "captures"
	ForQEMU     = "--kernel"
)

// Doctor checks every requirement.
func Doctor() []Check {
	const setup = "pcn setup"
	checks := []Check{
		{"microVM kernel in the cache", ForVM, haveKernel(), setup},
		{"the microVM's program", ForVM, haveGuest(), "make build"},
	}
	if uml.Runs() {
		checks = append(checks,
			Check{"QEMU (qemu-system-x86_64)", ForQEMU, haveQEMU(), setup + " --qemu"},
			Check{"a kernel of Debian in the cache", ForQEMU, haveDebian(), setup + " --qemu"})
	} else {
		checks = append(checks, Check{"QEMU (qemu-system-x86_64)", ForVM, haveQEMU(), setup})
	}
	checks = append(checks, nativeChecks()...)
	return append(checks, Check{"tshark", ForCaptures, haveTshark(), "install Wireshark's tshark"})
}

func haveQEMU() error {
	_, err := vm.CheckQEMU(context.Background())
	return err
}

func haveKernel() error {
	_, err := vm.Default()
	return err
}

func haveDebian() error {
	_, err := vm.FindKernel("")
	return err
}

func haveGuest() error {
	_, err := guestProgram(guestFolder)
	return err
}

func haveTshark() error {
	if _, err := exec.LookPath("tshark"); err != nil {
		return fmt.Errorf("tshark is not installed: it is needed to read captures")
	}
	return nil
}
