// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

func newCapture(tb testing.TB, file *bytes.Buffer, interfaces ...string) *Capture {
	tb.Helper()
	c, err := NewCapture(file, interfaces...)
	qt.Assert(tb, qt.IsNil(err))
	return c
}

func TestCaptureReadsBack(t *testing.T) {
	frame := marshalPFC(t, pause(t, 3))
	frames := []struct {
		iface int
		atNs  int64
		data  []byte
	}{
		{0, 0, frame},
		{1, 12800, marshal(t, decrease())},
		{1, -1, frame},
		{0, -CaptureBaseNs, frame},
		{0, math.MaxInt64 - CaptureBaseNs, frame},
		{1, 3, frame[:33]},
	}
	var file bytes.Buffer
	c := newCapture(t, &file, "S1:H0", "H1")
	for _, f := range frames {
		qt.Assert(t, qt.IsNil(c.WriteFrame(f.iface, f.atNs, f.data)))
	}
	qt.Assert(t, qt.IsNil(c.Flush()))

	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	qt.Assert(t, qt.IsNil(err))
	for _, f := range frames {
		data, info, err := r.ReadPacketData()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(data, f.data))
		qt.Check(t, qt.Equals(info.InterfaceIndex, f.iface))
		qt.Check(t, qt.Equals(info.Timestamp.UnixNano()-1_000_000_000_000, f.atNs))
	}
	for i, want := range []string{"S1:H0", "H1"} {
		iface, err := r.Interface(i)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(iface.Name, want))
	}
}

// A file has the bytes that gopacket's writer writes.
func TestCaptureAsOfGopacket(t *testing.T) {
	names := []string{"S1:H0", "H1", "abcd"}
	frames := [][]byte{marshal(t, decrease()), marshal(t, decrease())[:33], {1, 2, 3, 4}, nil}
	var file, want bytes.Buffer
	c := newCapture(t, &file, names...)
	var w *pcapgo.NgWriter
	for i, name := range names {
		link := pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeEthernet}
		if i > 0 {
			_, err := w.AddInterface(link)
			qt.Assert(t, qt.IsNil(err))
			continue
		}
		var err error
		w, err = pcapgo.NewNgWriterInterface(&want, link, pcapgo.NgWriterOptions{
			SectionInfo: pcapgo.NgSectionInfo{Application: "pcn",
				Comment: "The run starts at 1000 s after the Unix epoch."}})
		qt.Assert(t, qt.IsNil(err))
	}
	for i, frame := range frames {
		iface, atNs, length := i%len(names), int64(i)*12_345_678_901, len(frame)+i
		qt.Assert(t, qt.IsNil(c.WriteStart(iface, atNs, frame, length)))
		qt.Assert(t, qt.IsNil(w.WritePacket(gopacket.CaptureInfo{
			Timestamp: time.Unix(1000, atNs), CaptureLength: len(frame), Length: length,
			InterfaceIndex: iface,
		}, frame)))
	}
	qt.Assert(t, qt.IsNil(c.Flush()))
	qt.Assert(t, qt.IsNil(w.Flush()))
	qt.Check(t, qt.DeepEquals(file.Bytes(), want.Bytes()))
	err := c.WriteStart(0, 0, []byte{1, 2}, 1)
	qt.Check(t, qt.ErrorMatches(err, ".*2 bytes of a frame of 1"))
}

// The bytes hold nothing of this machine, nor of today.
func TestCaptureGolden(t *testing.T) {
	var file bytes.Buffer
	c := newCapture(t, &file, "h0", "h1")
	qt.Assert(t, qt.IsNil(c.WriteFrame(1, 5, []byte{0xaa, 0xbb, 0xcc})))
	qt.Assert(t, qt.IsNil(c.Flush()))

	// section, little endian, 1.0
	want := "0a0d0d0a" + "5c000000" + "4d3c2b1a" + "01000000" + "ffffffffffffffff" +
		"04000300" + hex.EncodeToString([]byte("pcn\x00")) + // application
		"01002e00" +
		hex.EncodeToString([]byte("The run starts at 1000 s after the Unix epoch.\x00\x00")) +
		"00000000" + "5c000000" +
		"01000000" + "28000000" + "01000000" + "00000000" + // interface: Ethernet, any length
		"02000200" + "68300000" + "09000100" + "09000000" + "00000000" + "28000000" + // h0, ns
		"01000000" + "28000000" + "01000000" + "00000000" +
		"02000200" + "68310000" + "09000100" + "09000000" + "00000000" + "28000000" +
		// packet
		"06000000" + "24000000" + "01000000" + "e8000000" + "0510a5d4" + "03000000" + "03000000" +
		"aabbcc00" + "24000000"
	qt.Assert(t, qt.Equals(hex.EncodeToString(file.Bytes()), want))
}

func TestNewCaptureErrors(t *testing.T) {
	long := string(make([]byte, 65536))
	for _, tc := range []struct {
		name       string
		interfaces []string
		want       string
	}{
		{"none", nil, "start capture: name at least one interface"},
		{"empty name", []string{"h0", ""},
			"start capture: interface 1 has a name of 0 bytes, want 1 to 65535"},
		{"long name", []string{long},
			"start capture: interface 0 has a name of 65536 bytes, want 1 to 65535"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := NewCapture(&bytes.Buffer{}, tc.interfaces...)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
}

func TestWriteFrameErrors(t *testing.T) {
	var file bytes.Buffer
	c := newCapture(t, &file, "h0")
	for _, tc := range []struct {
		name  string
		iface int
		atNs  int64
		want  string
	}{
		{"negative interface", -1, 0, "write frame to capture: no interface -1, there are 1"},
		{"interface", 1, 0, "write frame to capture: no interface 1, there are 1"},
		{"too early", 0, -CaptureBaseNs - 1,
			"write frame to capture on h0: time -1000000000001 ns is not in -1000000000000 to 9223371036854775807: .*"},
		{"too late", 0, math.MaxInt64,
			"write frame to capture on h0: time 9223372036854775807 ns is not in .*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := c.WriteFrame(tc.iface, tc.atNs, marshal(t, decrease()))
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
	// Nothing of the refused frames is in the file.
	var empty bytes.Buffer
	qt.Assert(t, qt.IsNil(newCapture(t, &empty, "h0").Flush()))
	qt.Assert(t, qt.IsNil(c.Flush()))
	qt.Assert(t, qt.DeepEquals(file.Bytes(), empty.Bytes()))
}

type fullDisk struct{ err error }

func (w fullDisk) Write([]byte) (int, error) { return 0, w.err }

func TestCaptureOnFullDisk(t *testing.T) {
	errFull := errors.New("disk full")
	c, err := NewCapture(fullDisk{errFull}, "h0")
	qt.Assert(t, qt.IsNil(err)) // the header is still in the buffer
	err = c.WriteFrame(0, 7, make([]byte, 1<<16))
	qt.Assert(t, qt.ErrorIs(err, errFull))
	qt.Assert(t, qt.ErrorMatches(err, "write frame to capture on h0 at 7 ns: disk full"))
	qt.Assert(t, qt.ErrorMatches(c.Flush(), "flush capture: disk full"))

	many := make([]string, 1000)
	for i := range many {
		many[i] = "h0"
	}
	_, err = NewCapture(fullDisk{errFull}, many...)
	qt.Assert(t, qt.ErrorMatches(err, `start capture: add interface "h0": disk full`))
}

// What was written is read again. A capture that is cut short gives the frames before the cut.
func TestEachFrame(t *testing.T) {
	var text bytes.Buffer
	c, err := NewCapture(&text, "H0")
	qt.Assert(t, qt.IsNil(err))
	type seen struct {
		atNs  int64
		frame string
	}
	want := []seen{{-5_000_000_000, "a"}, {0, "bcdef"}, {7_000_000_001, "ghij"}}
	for _, w := range want {
		qt.Assert(t, qt.IsNil(c.WriteFrame(0, w.atNs, []byte(w.frame))))
	}
	qt.Assert(t, qt.IsNil(c.Flush()))
	for cut := range text.Len() + 1 {
		got := []seen{}
		EachFrame(text.Bytes()[:cut], func(atNs int64, frame []byte) {
			got = append(got, seen{atNs, string(frame)})
		})
		qt.Assert(t, qt.IsTrue(slices.Equal(got, want[:len(got)])), qt.Commentf("cut at %d", cut))
		if cut == text.Len() {
			qt.Check(t, qt.HasLen(got, len(want)))
		}
	}
}
