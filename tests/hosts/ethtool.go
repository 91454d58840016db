// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of ethtool that set an offload (linux/ethtool.h).
const (
	ethtoolTSO uint32 = 0x1f
	ethtoolGSO uint32 = 0x24
	ethtoolGRO uint32 = 0x2c
)

// setOffload turns an offload of the device on or off, in the namespace of this thread.
func setOffload(device string, command uint32, on bool) error {
	value := struct{ command, data uint32 }{command: command}
	if on {
		value.data = 1
	}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		pad  [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket for ethtool: %w", err)
	}
	defer unix.Close(fd)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("set offload %#x of device %s to %t: %w", command, device, on, errno)
	}
	return nil
}
