// SPDX-License-Identifier: Apache-2.0

package sim

// packetKind is what a packet is.
type packetKind uint8

const (
	packetData packetKind = iota // of a controlled flow
	packetUDP                    // of a burst
	packetACK
	packetCNP
	packetCNM
)

// none is the index of no packet, port or flow.
const none = -1

// packet is a packet on its way. Packets are numbers in a slab: nothing is allocated for one.
type packet struct {
	arrived int64 // when it entered the queue that it is in
	sent    int64 // when its data packet left the sender
	note    notification
	flow    int32
	next    int32 // behind it in a queue or on a wire
	ingress int32 // port by which it came into the node that it is in
	seq     uint32
	cum     uint32 // of an ACK: the packet that is expected next
	order   uint32 // of transmissions of its flow; of an ACK: that of the newest data packet
	size    uint32 // of the frame
	step    uint32 // in world.steps: the port that it is in. So an arrival reads no flow
	marked  uint16 // of an ACK: packets with CE that it tells of
	kind    packetKind
	class   uint8
	ecn     uint8
	flags   uint8
}

// Flags of packets.
const (
	flagECE  uint8 = 1 << iota // an ACK echoes a mark, as RFC 3168 does
	flagCWR                    // the sender has heard it
	flagNACK                   // an ACK of a packet that came behind a lost one: go back
)

// slab has all packets.
type slab struct {
	packets []packet
	free    int32
}

func newSlab() slab { return slab{free: none} }

// alloc returns a packet with all fields zero.
func (s *slab) alloc() int32 {
	if i := s.free; i != none {
		s.free = s.packets[i].next
		s.packets[i] = packet{}
		return i
	}
	if len(s.packets) == cap(s.packets) {
		const first = 1 << 9
		larger := makeHuge[packet](len(s.packets), max(2*len(s.packets), first))
		copy(larger, s.packets)
		s.packets = larger
	}
	s.packets = append(s.packets, packet{})
	return int32(len(s.packets) - 1)
}

func (s *slab) release(i int32) {
	s.packets[i].next = s.free
	s.free = i
}

// list is packets, one behind the other.
type list struct {
	head, tail int32
	packets    uint32
}

func newList() list { return list{head: none, tail: none} }

func (l *list) push(s *slab, i int32) {
	s.packets[i].next = none
	if l.head == none {
		l.head = i
	} else {
		s.packets[l.tail].next = i
	}
	l.tail = i
	l.packets++
}

// pop removes the first packet. There must be one.
func (l *list) pop(s *slab) int32 {
	i := l.head
	l.head = s.packets[i].next
	l.packets--
	return i
}

// fifo is a list of packets that counts their bytes.
type fifo struct {
	list
	bytes uint64
}

func (f *fifo) push(s *slab, i int32) {
	f.list.push(s, i)
	f.bytes += uint64(s.packets[i].size)
}

// pop removes the first packet. There must be one.
func (f *fifo) pop(s *slab) int32 {
	i := f.list.pop(s)
	f.bytes -= uint64(s.packets[i].size)
	return i
}
