// SPDX-License-Identifier: Apache-2.0

package kernel

import "golang.org/x/sys/unix"

// recvTrunc takes what a TCP socket has, at most 1 MiB, and throws it away in the kernel: with MSG_TRUNC there
// is no buffer to copy to.
func recvTrunc(fd int) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 1<<20, unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
