// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/loader"
)

// burstFlow is one UDP flow of a burst.
type burstFlow struct {
	name     string
	group    string // name of the burst
	from     string
	to       string
	id       uint32
	key      loader.FlowKey
	startNs  uint64 // start after t = 0
	frames   int
	bytes    uint64
	gapNs    uint64 // time between packets; 0 sends all at once
	priority int
}

// ecn returns the ECN field of its packets: ECT(0) for a burst that sends at a rate, else not
// ECN-capable.
func (b *burstFlow) ecn() int {
	if b.gapNs == 0 {
		return 0
	}
	return 2
}

// bursts holds the UDP flows of all bursts. Those of a host share a raw socket, so that one system
// call can hand over packets of several flows.
type bursts struct {
	plan      *plan
	clock     clock
	addresses *addresses
	flows     []*burstFlow
	sockets   map[string]*ipv4.RawConn // by host
}

// open adds the flows of a burst. Flow ids start at firstID. It calls track with each flow.
func (b *bursts) open(
	burst experiment.Burst, firstID int, track func(loader.FlowKey, uint32) error,
) error {
	starts := burst.Starts(b.plan.exp.Duration)
	for _, from := range burst.From {
		for k := range burst.Flows * len(starts) {
			flow, err := b.newFlow(burst, from, k, firstID+len(b.flows))
			if err != nil {
				return err
			}
			flow.startNs = uint64(starts[k/burst.Flows])
			b.flows = append(b.flows, flow)
			if err := track(flow.key, flow.id); err != nil {
				return fmt.Errorf("flow %s: %w", flow.name, err)
			}
		}
	}
	return nil
}

func (b *bursts) newFlow(burst experiment.Burst, from string, k, id int) (*burstFlow, error) {
	p := b.plan
	flow := &burstFlow{
		name: fmt.Sprintf("%s-%s-%d", burst.Name, from, k), group: burst.Name,
		from: from, to: burst.To, id: uint32(id), priority: burst.Priority,
		frames: p.burstFrames(burst), bytes: uint64(burst.Size), gapNs: p.gapNs(burst),
	}
	src, err := b.addresses.next(p.host(from), burstSrcPorts)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", flow.name, err)
	}
	flow.key = loader.FlowKey{
		Src: src, Dst: netip.AddrPortFrom(p.nodes[p.host(burst.To)].addr, sinkPort),
		Protocol: unix.IPPROTO_UDP,
	}
	return flow, nil
}

// byHost yields each host that has flows, by name, with its flows.
func (b *bursts) byHost() iter.Seq2[string, []*burstFlow] {
	flows := map[string][]*burstFlow{}
	for _, flow := range b.flows {
		flows[flow.from] = append(flows[flow.from], flow)
	}
	return func(yield func(string, []*burstFlow) bool) {
		for _, host := range slices.Sorted(maps.Keys(flows)) {
			if !yield(host, flows[host]) {
				return
			}
		}
	}
}

// inTurns yields the packets of flows in the order in which they are sent, packet by packet: each
// as its flow and its number in it.
func inTurns(flows []*burstFlow) iter.Seq2[*burstFlow, int] {
	return func(yield func(*burstFlow, int) bool) {
		left := slices.Clone(flows)
		for round := 0; len(left) > 0; round++ {
			for _, flow := range left {
				if !yield(flow, round) {
					return
				}
			}
			left = slices.DeleteFunc(left, func(f *burstFlow) bool { return round+1 >= f.frames })
		}
	}
}

// openSockets opens the socket of each host that has flows.
func (b *bursts) openSockets(nodes namespaces) error {
	b.sockets = map[string]*ipv4.RawConn{}
	for from, flows := range b.byHost() {
		err := nodes[b.plan.host(from)].do(func() (err error) {
			b.sockets[from], err = b.openSocket(flows)
			return err
		})
		if err != nil {
			return fmt.Errorf("open the socket of %s's bursts: %w", from, err)
		}
	}
	return nil
}

// openSocket opens the socket of a host's flows in the thread's namespace. Its send buffer holds
// all flows, which are sent ahead of their time.
func (b *bursts) openSocket(flows []*burstFlow) (*ipv4.RawConn, error) {
	const (
		skbOverhead = 2048    // largest overhead of an skb in a send buffer, in bytes
		mostBytes   = 1 << 30 // Linux doubles it, into an int
	)
	buffer := 0
	for _, flow := range flows {
		buffer += flow.frames * (int(b.plan.exp.Frame) + skbOverhead)
	}
	conn, err := net.ListenIP(fmt.Sprintf("ip4:%d", unix.IPPROTO_RAW), nil)
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("get socket: %w", err)
	}
	err = setOptions(raw, option{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, min(buffer, mostBytes)})
	if err != nil {
		return nil, err
	}
	if err := setDepartureTimes(raw); err != nil {
		return nil, err
	}
	return ipv4.NewRawConn(conn)
}

// frames returns the number of packets of all bursts.
func (b *bursts) frames() int {
	var n int
	for _, flow := range b.flows {
		n += flow.frames
	}
	return n
}

// burstBatch is how many packets a system call hands over at most.
const burstBatch = 64

// load hands all bursts to their hosts' ports, each packet with its departure time; t0Ns is t = 0
// on the papers' clock. The flows of a host take turns, packet by packet. It closes the sockets: an
// open one tells Go of room in its buffer whenever a packet has left, and wakes it in vain.
func (b *bursts) load(t0Ns uint64) error {
	for host, flows := range b.byHost() {
		socket := b.sockets[host]
		if err := errors.Join(b.loadHost(socket, flows, t0Ns), socket.Close()); err != nil {
			return fmt.Errorf("send the bursts of %s: %w", host, err)
		}
	}
	return nil
}

// loadHost hands over the packets of one host's flows, some at a time.
func (b *bursts) loadHost(socket *ipv4.RawConn, flows []*burstFlow, t0Ns uint64) error {
	payload := make([]byte, b.plan.exp.Frame-ethHeader-udpIPHeader)
	batch := make([]ipv4.Message, 0, burstBatch)
	for flow, i := range inTurns(flows) {
		m, err := b.message(flow, i, t0Ns, payload)
		if err != nil {
			return fmt.Errorf("flow %s: packet %d: %w", flow.name, i, err)
		}
		if batch = append(batch, m); len(batch) < burstBatch {
			continue
		}
		if err := sendAll(socket, batch); err != nil {
			return fmt.Errorf("flow %s: packet %d: %w", flow.name, i, err)
		}
		batch = batch[:0]
	}
	return sendAll(socket, batch)
}

// message is packet i of a flow.
func (b *bursts) message(
	flow *burstFlow, i int, t0Ns uint64, payload []byte,
) (m ipv4.Message, err error) {
	payload = payload[:min(uint64(len(payload)), flow.bytes-uint64(i)*uint64(len(payload)))]
	header, err := flow.header(len(payload))
	if err != nil {
		return m, err
	}
	atNs := t0Ns + flow.startNs + uint64(i)*flow.gapNs
	return ipv4.Message{
		Buffers: [][]byte{header, payload},
		OOB:     departureTime(b.clock.toKernelNs(atNs)),
		Addr:    &net.IPAddr{IP: flow.key.Dst.Addr().AsSlice()},
	}, nil
}

// header returns the headers of IP, whose checksum the kernel adds, and of UDP, without one.
func (b *burstFlow) header(payloadBytes int) ([]byte, error) {
	const udpBytes = 8
	length := uint16(udpBytes + payloadBytes)
	src, dst := b.key.Src.Addr().AsSlice(), b.key.Dst.Addr().AsSlice()
	ip := ipv4.Header{
		Version: ipv4.Version, Len: ipv4.HeaderLen, TOS: dataDSCP(b.priority)<<2 | b.ecn(),
		TotalLen: ipv4.HeaderLen + int(length), Flags: ipv4.DontFragment, TTL: 64,
		Protocol: unix.IPPROTO_UDP, Src: src, Dst: dst,
	}
	header, err := ip.Marshal()
	if err != nil {
		return nil, err
	}
	udp := make([]byte, udpBytes) // a checksum of 0: there is none
	binary.BigEndian.PutUint16(udp, b.key.Src.Port())
	binary.BigEndian.PutUint16(udp[2:], b.key.Dst.Port())
	binary.BigEndian.PutUint16(udp[4:], length)
	return append(header, udp...), nil
}

// sendAll sends all messages.
func sendAll(conn *ipv4.RawConn, messages []ipv4.Message) error {
	for len(messages) > 0 {
		n, err := conn.WriteBatch(messages, 0)
		if err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}
