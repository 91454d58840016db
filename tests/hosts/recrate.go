// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
)

// recRates are the RecRates of the CNPs that asked a flow for a decrease.
type recRates struct {
	cnps    int
	sumMbps float64
}

// listen hears the CNPs that senders receive, before RP consumes them. The function that it returns
// ends that, and tells how many there were, and the sum over flows of a flow's mean RecRate.
func (b *Bed) listen() func() (cnps int, sumMbps float64) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	heard := make([]map[uint16]*recRates, len(b.senders)) // by the flow's source port
	var running sync.WaitGroup
	for i, sender := range b.senders {
		heard[i] = map[uint16]*recRates{}
		const ethPAll = 0x0300 // ETH_P_ALL in network byte order
		var fd int
		nstest.Do(b.t, sender.ns, func() (err error) {
			if fd, err = unix.Socket(unix.AF_PACKET,
				unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
				return err
			}
			return errors.Join(
				unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
				unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ethPAll, Ifindex: sender.index}))
		})
		running.Go(func() {
			defer unix.Close(fd)
			hear(ctx, fd, heard[i])
		})
	}
	return func() (cnps int, sumMbps float64) {
		cancel()
		running.Wait()
		for _, flows := range heard {
			for _, r := range flows {
				cnps += r.cnps
				sumMbps += r.sumMbps / float64(r.cnps)
			}
		}
		return cnps, sumMbps
	}
}

func hear(ctx context.Context, fd int, flows map[uint16]*recRates) {
	frame := make([]byte, 2048)
	for ctx.Err() == nil {
		const wakeUp = 20 // ms: how soon the context's end is seen
		unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wakeUp)
		for {
			n, _, err := unix.Recvfrom(fd, frame, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				break
			}
			undoHop(frame)
			c, err := cnp.Parse(frame[:n])
			if err != nil || !c.Decrease {
				continue
			}
			r := flows[c.FlowSrcPort]
			if r == nil {
				r = &recRates{}
				flows[c.FlowSrcPort] = r
			}
			r.cnps++
			r.sumMbps += float64(c.RecRateMbps)
		}
	}
}

// undoHop makes a frame what it was before the bed's router, since cnp.Parse wants CNPs as NP wrote
// them.
func undoHop(frame []byte) {
	const ip, ttl, checksum, hopLimit = 14, 8, 10, 7
	if frame[ip]>>4 == 6 {
		frame[ip+hopLimit]++
		return
	}
	frame[ip+ttl]++
	sum := frame[ip+checksum:]
	// one's complement: the router added 0x0100
	binary.BigEndian.PutUint16(sum,
		uint16((uint32(binary.BigEndian.Uint16(sum))+0xfeff)%0xffff))
}
