// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
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
	conn     *net.UDPConn
}

// ecn returns the ECN field of its packets: ECT(0) for a burst that sends at a rate, else not
// ECN-capable.
func (b *burstFlow) ecn() int {
	if b.gapNs == 0 {
		return 0
	}
	return 2
}

// bursts holds the UDP flows of all bursts.
type bursts struct {
	plan      *plan
	clock     clock
	addresses *addresses
	flows     []*burstFlow
}

// open opens the sockets of a burst. Flow ids start at firstID. It calls track with each flow
// before it opens the flow's socket.
func (b *bursts) open(
	burst experiment.Burst, nodes namespaces, firstID int, track func(loader.FlowKey, uint32) error,
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
			err = nodes[b.plan.host(from)].do(func() error { return b.openSocket(flow) })
			if err != nil {
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

// openSocket opens a flow's socket in the thread's namespace. Its send buffer holds the whole flow,
// which is sent ahead of its time.
func (b *bursts) openSocket(flow *burstFlow) error {
	const skbOverhead = 2048 // largest overhead of an skb in a send buffer, in bytes
	buffer := flow.frames * (int(b.plan.exp.Frame) + skbOverhead)
	conn, err := net.DialUDP(
		"udp4", net.UDPAddrFromAddrPort(flow.key.Src), net.UDPAddrFromAddrPort(flow.key.Dst))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	flow.conn = conn
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("get socket: %w", err)
	}
	if err := setOptions(raw,
		option{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer},
		option{unix.IPPROTO_IP, unix.IP_TOS, dataDSCP(flow.priority)<<2 | flow.ecn()}); err != nil {
		return err
	}
	return setDepartureTimes(raw)
}

// frames returns the number of packets of all bursts.
func (b *bursts) frames() int {
	var n int
	for _, flow := range b.flows {
		n += flow.frames
	}
	return n
}

// load hands all bursts to their hosts' ports, each packet with its departure time; t0Ns is t = 0
// on the papers' clock. The flows of a host take turns, packet by packet.
func (b *bursts) load(t0Ns uint64) error {
	payload := make([]byte, b.plan.exp.Frame-ethHeader-udpIPHeader)
	left := b.flows
	for round := 0; len(left) > 0; round++ {
		var more []*burstFlow
		for _, flow := range left {
			atNs := t0Ns + flow.startNs + uint64(round)*flow.gapNs
			if err := b.sendFrame(flow, round, atNs, payload); err != nil {
				return fmt.Errorf("flow %s: %w", flow.name, err)
			}
			if round+1 < flow.frames {
				more = append(more, flow)
			}
		}
		left = more
	}
	return nil
}

func (b *bursts) sendFrame(flow *burstFlow, i int, atNs uint64, payload []byte) error {
	if rest := flow.bytes - uint64(i)*uint64(len(payload)); rest < uint64(len(payload)) {
		payload = payload[:rest]
	}
	oob := departureTime(b.clock.toKernelNs(atNs))
	if _, _, err := flow.conn.WriteMsgUDPAddrPort(payload, oob, netip.AddrPort{}); err != nil {
		return fmt.Errorf("send packet %d: %w", i, err)
	}
	return nil
}
