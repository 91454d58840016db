// SPDX-License-Identifier: Apache-2.0

// Package rights tells what this process may not do, and explains what the kernel refused.
package rights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Capability is a right of a thread.
type Capability struct {
	name string
	bit  uint
	// instead is another that includes it; 0: none
	instead uint
}

// Needed are those that loading and attaching needs, and why is in docs/host.md.
var Needed = []Capability{
	{"CAP_BPF", unix.CAP_BPF, unix.CAP_SYS_ADMIN},
	{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN, 0},
	{"CAP_PERFMON", unix.CAP_PERFMON, unix.CAP_SYS_ADMIN},
}

// Missing returns those that this thread lacks.
func Missing(needed ...Capability) ([]string, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil, fmt.Errorf("read the capabilities of this process: %w", err)
	}
	effective := uint64(data[1].Effective)<<32 | uint64(data[0].Effective)
	has := func(bit uint) bool { return effective>>bit&1 == 1 }
	var missing []string
	for _, c := range needed {
		if !has(c.bit) && (c.instead == 0 || !has(c.instead)) {
			missing = append(missing, c.name)
		}
	}
	return slices.Clip(missing), nil
}

// What it takes to enter a network namespace, that of a process of another user too, and to mount.
var (
	Mounting = Capability{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN, 0}
	Raw      = Capability{"CAP_NET_RAW", unix.CAP_NET_RAW, 0} // to open packet sockets
	Entering = []Capability{Mounting, {"CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE, 0}}
)

// Have fails if this thread may not load and attach, and says what it lacks.
func Have() error {
	if inUserNamespace() {
		return fmt.Errorf("this process is in a user namespace, whose rights are none to load BPF "+
			"programs: run it outside, as root: %w", unix.EPERM)
	}
	missing, err := Missing(Needed...)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("this process lacks %s: %s: %w", strings.Join(missing, ", "), runAsRoot,
			unix.EPERM)
	}
	return nil
}

// inUserNamespace reports whether this process is in another user namespace than the machine's,
// which has all users.
func inUserNamespace() bool {
	const all = "4294967295"
	text, err := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(text))
	return err == nil && !slices.Equal(fields, []string{"0", "0", all})
}

const runAsRoot = "run it as root, or see Rights in pcn docs host"

// Explain adds to the error of what the kernel refused what this process lacks, of the
// capabilities that are needed for it. Other errors stay as they are.
func Explain(err error, needed ...Capability) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	missing, capErr := Missing(needed...)
	if capErr != nil {
		return errors.Join(err, capErr)
	}
	var is []string
	if user := os.Geteuid(); user != 0 {
		is = append(is, fmt.Sprintf("is user %d, not root", user))
	}
	if len(missing) > 0 {
		is = append(is, "lacks "+strings.Join(missing, ", "))
	}
	if len(is) == 0 {
		return fmt.Errorf("%w: this process is root and has the capabilities: look for a security "+
			"module that refuses it (journalctl -k), or for restrictions of a service or container",
			err)
	}
	return fmt.Errorf("%w: this process %s: %s", err, strings.Join(is, ", and "), runAsRoot)
}
