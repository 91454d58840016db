// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
)

// tap is a network device whose wire is a file of the test: what the test writes arrives at the
// device, and what the device sends the test reads. Both happen within the system call, so nothing
// has to be waited for.
type tap struct {
	ns      netns.NsHandle
	ifindex int
	fd      int
	buf     []byte // for one frame
}

// newTap makes a device that is up, of this netdev group.
func newTap(t *testing.T, h netns.NsHandle, name string, group int) *tap {
	t.Helper()
	dev := &tap{ns: h, buf: make([]byte, vnetHeaderLen+1<<16)}
	nstest.Do(t, h, func() (err error) {
		dev.fd, err = openTap(name)
		return err
	})
	t.Cleanup(func() { unix.Close(dev.fd) })
	nl := nstest.Netlink(t, h)
	l, err := nl.LinkByName(name)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(nl.LinkSetGroup(l, group)))
	qt.Assert(t, qt.IsNil(nl.LinkSetMTU(l, 9000)))
	qt.Assert(t, qt.IsNil(nl.LinkSetTxQLen(l, 10000)))
	qt.Assert(t, qt.IsNil(nl.LinkSetUp(l)))
	dev.ifindex = l.Attrs().Index
	return dev
}

func openTap(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return -1, errors.Join(fmt.Errorf("make TAP device %s: %w", name, err), unix.Close(fd))
	}
	return fd, nil
}

// vnetHeader is struct virtio_net_hdr, what the device is told of a frame's offloads.
type vnetHeader struct {
	Flags, GSOType                            uint8
	HeaderLen, GSOSize, CsumStart, CsumOffset uint16
}

const vnetHeaderLen = 10

// unchecked says of a TCP segment that its checksum is still to do, as of every segment of a local
// sender and of every segment that GRO merged.
func unchecked() vnetHeader {
	return vnetHeader{Flags: unix.VIRTIO_NET_HDR_F_NEEDS_CSUM, CsumStart: 34, CsumOffset: 16}
}

// segments says that the frame is a chain of TCP segments of size payload bytes.
func segments(size int) vnetHeader {
	h := unchecked()
	h.GSOType, h.GSOSize, h.HeaderLen = unix.VIRTIO_NET_HDR_GSO_TCPV4, uint16(size), 54
	return h
}

// receive makes the frame arrive at the device.
func (d *tap) receive(t *testing.T, h vnetHeader, frame []byte) {
	t.Helper()
	b, err := binary.Append(nil, binary.NativeEndian, h)
	qt.Assert(t, qt.IsNil(err))
	_, err = unix.Write(d.fd, append(b, frame...))
	qt.Assert(t, qt.IsNil(err))
}

// sent is every frame that the device has sent since the last call.
func (d *tap) sent(t *testing.T) [][]byte {
	t.Helper()
	var frames [][]byte
	for {
		n, err := unix.Read(d.fd, d.buf)
		if errors.Is(err, unix.EAGAIN) {
			return frames
		}
		qt.Assert(t, qt.IsNil(err))
		frames = append(frames, bytes.Clone(d.buf[vnetHeaderLen:n]))
	}
}
