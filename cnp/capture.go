// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
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
	w          *pcapgo.NgWriter
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
	// Hardware and OS stay empty, so that files are the same on all machines.
	options := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
		Application: "pcn",
		Comment:     comment,
	}}
	ng, err := pcapgo.NewNgWriterInterface(w, ngInterface(interfaces[0]), options)
	if err != nil {
		return nil, fmt.Errorf("start capture: %w", err)
	}
	for _, name := range interfaces[1:] {
		if _, err := ng.AddInterface(ngInterface(name)); err != nil {
			return nil, fmt.Errorf("start capture: add interface %q: %w", name, err)
		}
	}
	return &Capture{w: ng, interfaces: slices.Clone(interfaces), baseNs: baseNs}, nil
}

func ngInterface(name string) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeEthernet}
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
	info := gopacket.CaptureInfo{
		Timestamp:      time.Unix(0, c.baseNs+atNs),
		CaptureLength:  len(frame),
		Length:         length,
		InterfaceIndex: iface,
	}
	if err := c.w.WritePacket(info, frame); err != nil {
		return fmt.Errorf("write frame to capture on %s at %d ns: %w", c.interfaces[iface], atNs,
			err)
	}
	return nil
}

// Flush writes what is buffered to the underlying writer.
func (c *Capture) Flush() error {
	if err := c.w.Flush(); err != nil {
		return fmt.Errorf("flush capture: %w", err)
	}
	return nil
}
