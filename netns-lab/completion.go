// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// stampCompletion has the kernel note when the last byte of each write to come is acknowledged. Arrivals of ACKs
// would not tell it: some are for packets that were sent twice.
func (s *stream) stampCompletion() error {
	err := setOptions(s.raw, option{
		unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
		unix.SOF_TIMESTAMPING_TX_ACK | unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_TSONLY,
	})
	if err != nil {
		return fmt.Errorf("ask for the time of completion: %w", err)
	}
	return nil
}

// completedNs is when the last byte was acknowledged, on the papers' clock and as late as the ACK was; 0: not yet.
func (s *stream) completedNs(c clock) (uint64, error) {
	var wallNs uint64
	var err error
	if cerr := s.raw.Control(func(fd uintptr) { wallNs, err = lastStampNs(int(fd)) }); cerr != nil {
		return 0, cerr
	}
	if err != nil {
		return 0, fmt.Errorf("read the time of completion: %w", err)
	}
	if wallNs == 0 {
		return 0, nil
	}
	return c.ofWall(wallNs), nil
}

// lastStampNs takes all time stamps that a socket has, and returns the last; 0: it has none.
func lastStampNs(fd int) (uint64, error) {
	var last uint64
	oob := make([]byte, 512)
	for {
		_, n, _, _, err := unix.Recvmsg(fd, nil, oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		messages, err := unix.ParseSocketControlMessage(oob[:n])
		if err != nil {
			return 0, err
		}
		for _, m := range messages {
			// struct scm_timestamping: the first of three timespecs is the kernel's
			if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPING && len(m.Data) >= 16 {
				last = max(last, binary.NativeEndian.Uint64(m.Data)*1e9+binary.NativeEndian.Uint64(m.Data[8:]))
			}
		}
	}
}
