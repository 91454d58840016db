// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// CaptureBaseNs is the timestamp in a capture, in ns after the Unix epoch, of
// the start of the run: 1000 s. pcapng has no time before the epoch, and a run's
// set-up happens before its start. Wireshark's frame.time_epoch 1000.000012800
// is 12.8 us into the run.
const CaptureBaseNs int64 = 1000 * 1e9

// Capture writes Ethernet frames to a pcapng file with the run's own clock. The
// same calls give the same bytes on every machine and day. A Capture is not
// safe for concurrent use.
type Capture struct {
	w          pcapng
	interfaces []string
	baseNs     int64 // added to frame times, in ns after the Unix epoch
}

// NewCapture starts a pcapng file on w with the named interfaces. Call Flush
// when done. It is an error if there is no interface or one has no name, or if
// w fails.
func NewCapture(w io.Writer, interfaces ...string) (*Capture, error) {
	return startCapture(w, CaptureBaseNs, "The run starts at 1000 s after the Unix epoch.",
		interfaces)
}

// NewHostCapture is NewCapture for a real host: WriteFrame's times are those of
// the wall clock, in ns after the Unix epoch.
func NewHostCapture(w io.Writer, interfaces ...string) (*Capture, error) {
	return startCapture(w, 0, "CNPs of a host.", interfaces)
}

func startCapture(
	w io.Writer, baseNs int64, comment string, interfaces []string,
) (*Capture, error) {
	if len(interfaces) == 0 {
		return nil, errors.New("start capture: name at least one interface")
	}
	for i, name := range interfaces {
		if name == "" || len(name) > math.MaxUint16 {
			return nil,
				fmt.Errorf("start capture: interface %d has a name of %d bytes, want 1 to %d", i,
					len(name), math.MaxUint16)
		}
	}
	c := &Capture{w: newPcapng(w), interfaces: slices.Clone(interfaces), baseNs: baseNs}
	if err := c.w.writeSection("pcn", comment); err != nil {
		return nil, fmt.Errorf("start capture: %w", err)
	}
	for _, name := range interfaces {
		if err := c.w.writeInterface(name); err != nil {
			return nil, fmt.Errorf("start capture: add interface %q: %w", name, err)
		}
	}
	return c, nil
}

// WriteFrame adds an Ethernet frame without FCS that passed the interface, an
// index into the names given to NewCapture, at atNs in ns since the start of
// the run. Frames need not come in order. It is an error if there is no such
// interface, or if atNs does not fit: it is at least -CaptureBaseNs, 1000 s
// before the start.
func (c *Capture) WriteFrame(iface int, atNs int64, frame []byte) error {
	return c.WriteStart(iface, atNs, frame, len(frame))
}

// WriteStart is WriteFrame for the first bytes of a frame of this length.
func (c *Capture) WriteStart(iface int, atNs int64, frame []byte, length int) error {
	if iface < 0 || iface >= len(c.interfaces) {
		return fmt.Errorf("write frame to capture: no interface %d, there are %d", iface,
			len(c.interfaces))
	}
	if atNs < -c.baseNs || atNs > math.MaxInt64-c.baseNs {
		return fmt.Errorf("write frame to capture on %s: time %d ns is not in %d to %d: count it "+
			"from the start of the run",
			c.interfaces[iface], atNs, -c.baseNs, math.MaxInt64-c.baseNs)
	}
	if length < len(frame) {
		return fmt.Errorf("write frame to capture on %s: %d bytes of a frame of %d",
			c.interfaces[iface], len(frame), length)
	}
	if err := c.w.writePacket(iface, c.baseNs+atNs, frame, length); err != nil {
		return fmt.Errorf("write frame to capture on %s at %d ns: %w", c.interfaces[iface], atNs,
			err)
	}
	return nil
}

// Flush writes what is buffered to the underlying writer.
func (c *Capture) Flush() error {
	if err := c.w.flush(); err != nil {
		return fmt.Errorf("flush capture: %w", err)
	}
	return nil
}

// EachFrame calls fn for each frame of a capture that [Capture] wrote, with its time since the
// start of the run. It ends where the capture does, or is damaged.
func EachFrame(capture []byte, fn func(atNs int64, frame []byte)) {
	const header, trailer = 28, 4
	for len(capture) >= header+trailer {
		length := int(binary.LittleEndian.Uint32(capture[4:]))
		if length < header || length > len(capture) {
			return
		}
		if binary.LittleEndian.Uint32(capture) == packetBlock {
			high := binary.LittleEndian.Uint32(capture[12:])
			low := binary.LittleEndian.Uint32(capture[16:])
			n := int(binary.LittleEndian.Uint32(capture[20:]))
			if n > length-header-trailer {
				return
			}
			fn(int64(high)<<32+int64(low)-CaptureBaseNs, capture[header:header+n])
		}
		capture = capture[length:]
	}
}
