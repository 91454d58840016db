// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
)

// stream is a TCP flow.
type stream struct {
	experiment.Flow
	id      uint32
	key     loader.FlowKey
	startNs uint64 // when it may send, on the papers' clock
	send    *net.TCPConn
	receive *net.TCPConn
	raw     syscall.RawConn // of send
	primed  uint64          // bytes that were sent before it started
}

// tcpInfo reads the kernel's view of the flow's sender.
func (s *stream) tcpInfo() (info *unix.TCPInfo, err error) {
	if info, err = socket.Info(s.send); err != nil {
		return nil, fmt.Errorf("flow %s: read TCP_INFO: %w", s.Name, err)
	}
	return info, nil
}

// prime sends one byte under another control, so that the flow's own control does not see it.
func (s *stream) prime() error {
	if s.primed == 0 {
		if err := socket.SetControl(s.raw, "reno"); err != nil {
			return err
		}
	}
	if _, err := s.send.Write([]byte{0}); err != nil {
		return err
	}
	s.primed++
	return nil
}

// waitAcked waits until all that was sent has been acknowledged.
func (s *stream) waitAcked(ctx context.Context) error {
	for {
		info, err := s.tcpInfo()
		if err != nil || info.Unacked == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}
