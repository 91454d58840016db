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
	Answer  string   // terminal that the host reads the answer from; "": memory of a device
}

// File is a file of the guest, beside the program.
type File struct {
	Path string // absolute
	Mode uint64 // permissions
	Data []byte
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
