// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"bufio"
	"encoding/binary"
	"io"
)

// pcapng writes the blocks of a pcapng file, little endian (draft-ietf-opsawg-pcapng, section 4).
// gopacket has a writer too, whose tables of protocols are 5 MB, which Go's garbage collector reads
// each time. Tests read what this writes with gopacket.
type pcapng struct {
	w     *bufio.Writer
	block []byte // the one that is being written
}

func newPcapng(w io.Writer) pcapng { return pcapng{w: bufio.NewWriter(w)} }

// Types of blocks.
const (
	sectionBlock   = 0x0a0d0d0a
	interfaceBlock = 1
	packetBlock    = 6 // an enhanced packet
)

// Codes of options. Those of a section and of an interface are of their own.
const (
	optionEnd           = 0
	optionComment       = 1
	optionApplication   = 4 // of a section
	optionInterfaceName = 2
	optionResolution    = 9 // of an interface's timestamps: a power of 1/10 s
)

// What a file says of itself and of its links.
const (
	byteOrderMagic = 0x1a2b3c4d
	majorVersion   = 1
	unknownLength  = 1<<64 - 1 // of a section
	linkEthernet   = 1
	nanoseconds    = 9
)

// writeSection begins the file. Hardware and operating system stay unsaid, so that files are the
// same on all machines.
func (p *pcapng) writeSection(application, comment string) error {
	p.begin(sectionBlock)
	p.add32(byteOrderMagic)
	p.add16(majorVersion)
	p.add16(0) // minor version
	p.block = binary.LittleEndian.AppendUint64(p.block, unknownLength)
	p.addOption(optionApplication, []byte(application))
	p.addOption(optionComment, []byte(comment))
	p.addOption(optionEnd, nil)
	return p.end()
}

// writeInterface adds an Ethernet interface. The first has index 0.
func (p *pcapng) writeInterface(name string) error {
	p.begin(interfaceBlock)
	p.add16(linkEthernet)
	p.add16(0) // reserved
	p.add32(0) // frames of any length
	p.addOption(optionInterfaceName, []byte(name))
	p.addOption(optionResolution, []byte{nanoseconds})
	p.addOption(optionEnd, nil)
	return p.end()
}

// writePacket adds the first bytes of a frame of this length. The time is in ns after the Unix
// epoch.
func (p *pcapng) writePacket(iface int, timeNs int64, frame []byte, length int) error {
	p.begin(packetBlock)
	p.add32(uint32(iface))
	p.add32(uint32(timeNs >> 32))
	p.add32(uint32(timeNs))
	p.add32(uint32(len(frame)))
	p.add32(uint32(length))
	p.addPadded(frame)
	return p.end()
}

func (p *pcapng) flush() error { return p.w.Flush() }

// begin begins a block. Its length follows at its end.
func (p *pcapng) begin(kind uint32) {
	p.block = p.block[:0]
	p.add32(kind)
	p.add32(0)
}

// end writes the block, with its length behind its type and behind all.
func (p *pcapng) end() error {
	length := uint32(len(p.block) + 4)
	binary.LittleEndian.PutUint32(p.block[4:], length)
	p.add32(length)
	_, err := p.w.Write(p.block)
	return err
}

func (p *pcapng) add16(v uint16) { p.block = binary.LittleEndian.AppendUint16(p.block, v) }
func (p *pcapng) add32(v uint32) { p.block = binary.LittleEndian.AppendUint32(p.block, v) }

// addPadded adds bytes, and zeros up to a multiple of 4.
func (p *pcapng) addPadded(data []byte) {
	p.block = append(p.block, data...)
	for len(p.block)%4 != 0 {
		p.block = append(p.block, 0)
	}
}

func (p *pcapng) addOption(code uint16, value []byte) {
	p.add16(code)
	p.add16(uint16(len(value)))
	p.addPadded(value)
}
