// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"strconv"
)

// umlMachine runs a configuration in User Mode Linux: the kernel as a program of this machine. Its
// clock stands still while its CPU works, and goes on to the next timer when that is idle. So it
// takes no time to compute, and a run does not depend on the host's speed.
type umlMachine struct{ Config }

// umlParameters are those of each microVM.
var umlParameters = []string{
	"time-travel=inf-cpu", "time-travel-start=1767225600000000000", // 2026-01-01
	// programs of the guest run under seccomp, not ptrace: system calls take three quarters
	"seccomp=on",
	"quiet", "rdinit=/init", "root=/dev/ram0", "oops=panic", "panic=-1",
	"con=null", "ssl=null",
	// flows have two packets in their own host's queue, not 1 ms of data: see boot.c of package uml
	"pcn_pacing_shift=20",
	// checks and accounting that a machine with one program has no use for
	"init_on_alloc=0", "hardened_usercopy=off", "lsm=", "audit=0", "random.trust_cpu=off",
}

// umlAnswer is the guest's terminal that writes to the file of the answer.
const umlAnswer = "/dev/tty1"

// Descriptors of the files that User Mode Linux inherits.
const (
	consoleFD = firstInherited + 1
	answerFD  = firstInherited + 2
)

func (m umlMachine) command(p paths) (program string, args []string) {
	return m.Kernel.Image, append(m.parameters(), "initrd="+p.initramfs)
}

// parameters are those that lead to a result. The kernel mixes its command line into its random
// numbers, so they name no file of the host.
func (m umlMachine) parameters() []string {
	return append(umlParameters[:len(umlParameters):len(umlParameters)],
		fmt.Sprintf("mem=%dM", m.MemoryMiB),
		fmt.Sprintf("con0=null,fd:%d", consoleFD), fmt.Sprintf("con1=null,fd:%d", answerFD),
		"pcn.seed="+strconv.FormatUint(m.Seed, 10))
}

func (umlMachine) answerAt() string { return umlAnswer }

func (umlMachine) deterministic() bool { return true }

func (umlMachine) standsStill() bool { return true }
