// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// maxHops is how many switches a packet has room for, INT_HOPS in bpf/algo/hpcc.h.
const maxHops = 5

// telemetryBytes is how long telemetry makes each data packet and ACK: IntHeader of HPCC's
// simulator, five hops of 8 bytes and their number.
const telemetryBytes = maxHops*8 + 2

// intHeader is struct int_header of bpf/algo/hpcc.h: what the switches wrote into a packet.
type intHeader struct {
	hop      [maxHops]uint64
	rateKbps [maxHops]uint32
	hops     uint32
}

// telemetry is what packets carry, if the scheme asks for it. Packets have it beside them, so that
// those of other schemes cost nothing for it.
type telemetry struct {
	headers []intHeader // of packets, by their number
	newest  []intHeader // of each flow: what its newest data packet brought to the receiver

	control                   *control
	header                    uint32 // address of what the control sees
	hopAt, rateKbpsAt, hopsAt uint32 // offsets in it
}

// Units of hops' fields at an int_multi of 1: INT_BYTES_UNIT and INT_QUEUE_UNIT.
const (
	intBytesUnit = 128
	intQueueUnit = 80
)

// newTelemetry prepares telemetry for flows of a control.
func newTelemetry(c *control, spec *ebpf.CollectionSpec) (*telemetry, error) {
	header, ok := c.global("telemetry")
	if !ok {
		return nil, fmt.Errorf("module %s has no variable telemetry: run make generate", c.name)
	}
	o := &offsets{layout: layout{spec.Types}, name: "int_header"}
	t := &telemetry{
		control: c, header: header,
		hopAt: o.of("hop"), rateKbpsAt: o.of("rate_kbps"), hopsAt: o.of("hops"),
	}
	return t, o.err
}

// begin clears the telemetry of a data packet.
func (t *telemetry) begin(packet int32) { *t.of(packet) = intHeader{} }

func (t *telemetry) of(packet int32) *intHeader {
	for int(packet) >= len(t.headers) {
		t.headers = append(t.headers, intHeader{})
	}
	return &t.headers[packet]
}

// stamp has a switch port write into a data packet that starts: the time, what left the port
// before, and the queue that it leaves behind, at the scale of its flow. bpf/algo/hpcc.h describes
// the fields.
func (t *telemetry) stamp(packet int32, now int64, p *port, multi uint64) {
	const timeBits, bytesBits, queueBits = 24, 20, 17
	h := &t.headers[packet]
	if h.hops < maxHops {
		h.hop[h.hops] = uint64(now)&(1<<timeBits-1) |
			p.counters.sentBytes/(intBytesUnit*multi)&(1<<bytesBits-1)<<timeBits |
			min(p.bytes/(intQueueUnit*multi), 1<<queueBits-1)<<(timeBits+bytesBits)
		h.rateKbps[h.hops] = uint32(p.rate / 1000)
	}
	h.hops++
}

// arrived keeps what a data packet brought, for ACKs.
func (t *telemetry) arrived(packet, flow int32) {
	for int(flow) >= len(t.newest) {
		t.newest = append(t.newest, intHeader{})
	}
	t.newest[flow] = t.headers[packet]
}

// echo gives an ACK what the newest data packet of its flow brought.
func (t *telemetry) echo(ack, flow int32) { *t.of(ack) = t.newest[flow] }

// deliver shows the control what an ACK brought.
func (t *telemetry) deliver(ack int32) {
	h, c := &t.headers[ack], t.control
	for i := range min(h.hops, maxHops) {
		c.put64(t.header+t.hopAt+8*i, h.hop[i])
		c.put32(t.header+t.rateKbpsAt+4*i, h.rateKbps[i])
	}
	c.put32(t.header+t.hopsAt, h.hops)
}

// setTelemetry prepares the telemetry of a scheme that asks for it, and the window of its flows:
// their host's rate times T, or a path's, unless the file has another.
func (t *transport) setTelemetry() error {
	if !t.plan.scheme.HasTelemetry() {
		return nil
	}
	spec, err := t.plan.scheme.Object.Types()
	if err != nil {
		return err
	}
	values := t.plan.exp.Values(t.plan.scheme)
	t.telemetry, err = newTelemetry(t.control, spec)
	if t.plan.exp.Transport.Window == (experiment.Flight{}) {
		t.scaleFlight = true
		t.flightNs = uint64(values.Get("rtt").Number)
		t.flightBytes = t.plan.bdpBytes(t.plan.fullFrame())
	}
	return err
}

// telemetryScale returns the scale of the telemetry of hosts with this line rate; 0 without any.
func (t *transport) telemetryScale(lineRate uint64) uint64 {
	if t.telemetry == nil {
		return 0
	}
	return uint64(t.senders[lineRate].values.Get("int_multi").Number)
}

// checkHops fails if a flow crosses more switches than telemetry has room for.
func (t *transport) checkHops() error {
	if t.telemetry == nil {
		return nil
	}
	for i := range t.flows[:t.streams] {
		f := &t.flows[i]
		if hops := len(t.dataPath(f)) - 1; hops > maxHops {
			return fmt.Errorf("flow %s crosses %d switches, and %s's telemetry has room for %d: "+
				"choose hosts that are nearer, or another scheme",
				f.spec.Name, hops, t.plan.scheme.Name, maxHops)
		}
	}
	return nil
}

// overhead is how many bytes telemetry adds to each data packet and ACK.
func (p *plan) overhead() uint32 {
	if p.scheme.HasTelemetry() {
		return telemetryBytes
	}
	return 0
}

// fullFrame is how long a full data packet is.
func (p *plan) fullFrame() uint64 { return uint64(p.exp.Frame) + uint64(p.overhead()) }
