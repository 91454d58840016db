// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watchdogID is that of QEMU's watchdog device, an Intel 6300ESB.
const watchdogID = "PCI_ID=8086:25AB"

// The watchdog's registers, and what it reads as a key before a register may be written: Intel
// 6300ESB datasheet, section 16.
const (
	watchdogConfig = 0x60 // in configuration space, 16 bits
	watchdogLock   = 0x68 // in configuration space, 8 bits
	watchdogStage1 = 0x00 // in memory, as the next two
	watchdogStage2 = 0x04
	watchdogReload = 0x0c
	watchdogKey1   = 0x80
	watchdogKey2   = 0x86

	watchdogNoInterruptMHz = 0x07 // of watchdogConfig: no interrupt at stage 1; ticks of 32 cycles
	watchdogEnable         = 0x02 // of watchdogLock
)

// pauseAfterTicks is from arming the watchdog to its pause, 30 ms, in ticks of 960 ns. That is
// between two ticks of the kernel's timer, every 4 ms, if it begins at one. Until then Go's threads
// have gone to sleep. See pause.
const pauseAfterTicks = 30_000_000 / 960

// pauseSleep is longer than pauseAfterTicks.
const pauseSleep = 60 * time.Millisecond

// pause stops the machine at one exact instruction, and returns when it was resumed. It lets QEMU's
// watchdog do that while the machine sleeps: the thread of QEMU's main loop then moves the clock to
// the watchdog's time, finds the watchdog due and stops the machine, and the other has nothing to
// do. If the guest stops itself, QEMU's threads race: the clock may go on by a timer before the
// main loop sees that the machine has stopped.
func pause() error {
	dir, err := findDevice(watchdogID)
	if err != nil {
		return fmt.Errorf("look for the watchdog: %w", err)
	}
	config, err := os.OpenFile(filepath.Join(dir, "config"), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the watchdog: %w", err)
	}
	defer config.Close()
	if err := setWatchdog(dir, config); err != nil {
		return fmt.Errorf("set the watchdog: %w", err)
	}
	// the console has sent all
	_ = unix.IoctlSetInt(int(os.Stdout.Fd()), unix.TCSBRK, 1)
	if err := awaitTick(); err != nil {
		return err
	}
	if _, err := config.WriteAt([]byte{watchdogEnable}, watchdogLock); err != nil {
		return fmt.Errorf("start the watchdog: %w", err)
	}
	time.Sleep(pauseSleep)
	return nil
}

// setWatchdog sets the watchdog's times.
func setWatchdog(dir string, config *os.File) error {
	mode := binary.LittleEndian.AppendUint16(nil, watchdogNoInterruptMHz)
	if _, err := config.WriteAt(mode, watchdogConfig); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "enable"), []byte("1"), 0); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "resource"))
	if err != nil {
		return err
	}
	var begin, end uint64 // physical addresses
	if _, err := fmt.Sscanf(string(text), "0x%x 0x%x", &begin, &end); err != nil {
		return fmt.Errorf("read %s/resource: %w", dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "resource0"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	page := os.Getpagesize()
	memory, err := unix.Mmap(int(f.Fd()), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	registers := memory[begin%uint64(page):]
	for _, stage := range []struct{ register, ticks uint32 }{
		{watchdogStage1, 1}, {watchdogStage2, pauseAfterTicks},
	} {
		store(&registers[watchdogReload], watchdogKey1)
		store(&registers[watchdogReload], watchdogKey2)
		store(&registers[stage.register], stage.ticks)
	}
	return unix.Munmap(memory)
}

// store writes a register. As it is not inlined, the compiler drops none of two writes to one.
//
//go:noinline
func store(register *byte, value uint32) { *(*uint32)(unsafe.Pointer(register)) = value }

// awaitTick returns just after a tick of the kernel's timer.
func awaitTick() error {
	var before, now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &before); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	for now = before; now == before; {
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now); err != nil {
			return fmt.Errorf("read the clock: %w", err)
		}
	}
	return nil
}

// findDevice returns the folder of a PCI device in /sys.
func findDevice(id string) (string, error) {
	devices, err := filepath.Glob("/sys/bus/pci/devices/*/uevent")
	if err != nil {
		return "", err
	}
	for _, uevent := range devices {
		text, err := os.ReadFile(uevent)
		if err != nil {
			return "", err
		}
		if strings.Contains(string(text), id) {
			return filepath.Dir(uevent), nil
		}
	}
	return "", fmt.Errorf("no %s", id)
}
