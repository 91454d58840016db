// SPDX-License-Identifier: Apache-2.0

// Package guest is the guest's side of package vm: the microVM's init. The host puts a [Job] into
// the initramfs, or into memory that both share; the guest returns an exit code and files.
package guest

import "os"

// Job tells the guest's init what to run, as JSON in [JobFile].
type Job struct {
	Args    []string // of the program, after its name
	Env     []string // KEY=value
	Dir     string   // working directory
	Modules []string // paths of kernel modules, to load in this order
	Seed    uint64   // of the kernel's random numbers; only in a job that a paused guest is handed
	// Paused, in the initramfs, says that there is no job yet: the guest prepares all that does not
	// depend on one, and pauses the machine. The host saves it, and hands a job to each copy that
	// resumes, with [WriteJob]. So only Modules are set beside it.
	Paused bool
}

// JobFile is the path of the job in the guest.
const JobFile = "/pcn-job.json"

// ProbeArg, as the only argument, asks for a guest that boots, runs nothing and ends.
const ProbeArg = "pcn-probe"

// These lines on the console enclose the program's output: text before and after comes from
// firmware and kernel.
const (
	ReadyLine = "pcn guest is up"
	DoneLine  = "pcn guest is done"
)

// Inside reports whether this process runs in a microVM of ours.
func Inside() bool {
	_, err := os.Stat(JobFile)
	return err == nil
}
