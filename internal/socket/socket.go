// SPDX-License-Identifier: Apache-2.0

// Package socket reads and sets options of TCP sockets that package net has no functions for.
package socket

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Do calls fn with the file descriptor of a socket.
func Do(c syscall.RawConn, fn func(fd int) error) (err error) {
	if failed := c.Control(func(fd uintptr) { err = fn(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

// Choose returns what a [net.Dialer] and a [net.ListenConfig] call for sockets to have a congestion
// control before the handshake. Without a name it is the namespace's.
func Choose(control string) func(_, _ string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		if control == "" {
			return nil
		}
		return SetControl(c, control)
	}
}

// SetControl chooses a socket's congestion control by name.
func SetControl(c syscall.RawConn, name string) error {
	return Do(c, func(fd int) error {
		err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
		if err != nil {
			return fmt.Errorf("choose congestion control %s: %w", name, err)
		}
		return nil
	})
}

// Control returns the name of a connection's congestion control.
func Control(c syscall.Conn) (name string, err error) {
	err = doConn(c, func(fd int) (err error) {
		name, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	return name, err
}

// Info returns what TCP knows of a connection.
func Info(c syscall.Conn) (info *unix.TCPInfo, err error) {
	err = doConn(c, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	return info, err
}

func doConn(c syscall.Conn, fn func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return Do(raw, fn)
}
