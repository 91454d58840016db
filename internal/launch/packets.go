// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/sim"
)

// Files of a trace of packets.
const (
	packetsFile        = "packets.csv"
	packetsCaptureFile = "packets.pcapng"
)

// packetColumns are the columns of PacketsFile.
const packetColumns = "time_ns,event,port,kind,flow,seq,size_bytes,class,ecn,queue_bytes\n"

// packetTrace writes what happens to packets: all of it as CSV, and what is sent as a capture.
type packetTrace struct {
	ports   []string
	csv     *traceFile
	pcap    *traceFile
	capture *cnp.Capture
	line    []byte
	frame   []byte
	err     error // the first
}

// traceFile is a buffered file.
type traceFile struct {
	*bufio.Writer
	file *os.File
}

func createTrace(dir, name string) (*traceFile, error) {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("write a trace of packets: %w", err)
	}
	return &traceFile{bufio.NewWriterSize(f, 1<<20), f}, nil
}

func (f *traceFile) close() error { return errors.Join(f.Flush(), f.file.Close()) }

// newPacketTrace starts the files of a job's trace.
func newPacketTrace(j job.Job) (*packetTrace, error) {
	if err := os.MkdirAll(j.PacketsIn, 0o755); err != nil {
		return nil, fmt.Errorf("write a trace of packets: %w", err)
	}
	t := &packetTrace{ports: j.Experiment.Topology.Network().Ports()}
	var err error
	if t.csv, err = createTrace(j.PacketsIn, packetsFile); err != nil {
		return nil, err
	}
	if t.pcap, err = createTrace(j.PacketsIn, packetsCaptureFile); err != nil {
		return nil, errors.Join(err, t.csv.close())
	}
	_, err = t.csv.WriteString(packetColumns)
	if err == nil {
		t.capture, err = cnp.NewCapture(t.pcap, t.ports...)
	}
	if err != nil {
		return nil, errors.Join(err, t.csv.close(), t.pcap.close())
	}
	return t, nil
}

// add writes an event.
func (t *packetTrace) add(e *sim.PacketEvent) {
	if t.err != nil {
		return
	}
	b := strconv.AppendInt(t.line[:0], e.TimeNs, 10)
	for _, text := range []string{e.Event, t.ports[e.Port], e.Kind, e.Flow} {
		b = append(append(b, ','), text...)
	}
	for _, n := range []uint64{
		uint64(e.Seq), uint64(e.Bytes), uint64(e.Class), uint64(e.ECN), e.QueueBytes,
	} {
		b = strconv.AppendUint(append(b, ','), n, 10)
	}
	t.line = append(b, '\n')
	_, t.err = t.csv.Write(t.line)
	if t.err == nil && e.Event == sim.PacketSent {
		t.frame = appendHeaders(t.frame[:0], e)
		t.err = t.capture.WriteStart(e.Port, e.TimeNs, t.frame, max(int(e.Bytes), len(t.frame)))
	}
}

// close ends the files.
func (t *packetTrace) close() error {
	err := errors.Join(t.err, t.capture.Flush(), t.csv.close(), t.pcap.close())
	if err != nil {
		return fmt.Errorf("write a trace of packets: %w", err)
	}
	return nil
}

const (
	etherIPv4 = 0x0800
	protoTCP  = 6

	controlClass = 6
	tcpHeader    = 32 // with time stamps
	tcpACK       = 0x10
	tcpECE       = 0x40
	tcpCWR       = 0x80
)

// appendHeaders appends the headers that the packet would have on Linux: see docs/architecture.md.
func appendHeaders(b []byte, e *sim.PacketEvent) []byte {
	src, dst := network.HostAddr(e.Src), network.HostAddr(e.Dst)
	from, to := src.As4(), dst.As4()
	if e.Kind == "cnp" {
		frame, err := cnp.CNP{
			DstMAC: hostMAC(to), SrcMAC: hostMAC(from), Src: src, Dst: dst,
			FlowSrcPort: e.SrcPort, FlowDstPort: e.DstPort,
			Decrease: e.CE, Undetermined: e.UE, RecRateMbps: e.RecRateMbps,
		}.AppendBinary(b)
		if err == nil {
			return frame
		}
	}
	if e.Kind == "cnm" {
		if frame, err := appendCNM(b, e); err == nil {
			return frame
		}
	}
	toMAC, fromMAC := hostMAC(to), hostMAC(from)
	b = append(append(b, toMAC[:]...), fromMAC[:]...)
	b = binary.BigEndian.AppendUint16(b, etherIPv4)
	ip := len(b)
	dscp := e.Class<<3 | 2
	if e.Class == controlClass {
		dscp = controlClass << 3
	}
	b = append(b, 0x45, dscp<<2|e.ECN)
	b = binary.BigEndian.AppendUint16(b, uint16(e.Bytes-uint32(ip)))
	b = append(b, 0, 0, 0x40, 0, 64, e.Protocol, 0, 0)
	b = append(append(b, from[:]...), to[:]...)
	binary.BigEndian.PutUint16(b[ip+10:], checksum(b[ip:]))
	b = binary.BigEndian.AppendUint16(b, e.SrcPort)
	b = binary.BigEndian.AppendUint16(b, e.DstPort)
	if e.Protocol != protoTCP {
		b = binary.BigEndian.AppendUint16(b, uint16(e.Bytes-uint32(ip)-20))
		return append(b, 0, 0)
	}
	seq, ack := e.Seq*e.Payload, uint32(0)
	if e.Kind == "ack" {
		seq, ack = 0, seq
	}
	b = binary.BigEndian.AppendUint32(b, seq)
	b = binary.BigEndian.AppendUint32(b, ack)
	flags := byte(tcpACK)
	if e.ECE {
		flags |= tcpECE
	}
	if e.CWR {
		flags |= tcpCWR
	}
	// window, checksum (which nobody computed), urgent pointer, and the time stamps' option
	b = append(b, tcpHeader/4<<4, flags, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10)
	return append(b, make([]byte, 8)...)
}

// appendCNM appends the CNM that answers a sampled packet. Its queue fields are 0: a simulated port
// says no more than the feedback.
func appendCNM(b []byte, e *sim.PacketEvent) ([]byte, error) {
	sampled := *e
	sampled.Kind, sampled.Class, sampled.ECN = "data", e.SampledClass, e.SampledECN
	sampled.Src, sampled.Dst, sampled.SrcPort, sampled.DstPort = e.Dst, e.Src, e.DstPort, e.SrcPort
	headers := appendHeaders(nil, &sampled)
	sampled.Bytes = uint32(len(headers)) + e.Payload
	frame := append(appendHeaders(headers[:0], &sampled), make([]byte, e.Payload)...)
	c, err := cnp.NewCNM(frame)
	if err != nil {
		return nil, err
	}
	c.QntzFb, c.CPID, c.EncapsulatedPriority = e.QntzFb, uint64(e.SampledBy), e.SampledClass
	return c.AppendBinary(b)
}

// hostMAC is the address that the lab's stamp gives a host: 02:00 and its IPv4 address.
func hostMAC(a [4]byte) [6]byte { return [6]byte{2, 0, a[0], a[1], a[2], a[3]} }

// checksum is that of an IPv4 header whose own is 0.
func checksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
