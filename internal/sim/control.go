// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/pcn-linux/pcn/config/scheme"
)

// dilation is the binary logarithm of how much slower the kernel's clock is that controls see: see
// bpf/include/simulator.h.
const dilation = 10

// The states of TCP that controls hear of (bpf/include/tcp.h).
const (
	stateOpen     = 0
	stateCWR      = 2
	stateRecovery = 3
	stateLoss     = 4
)

// eventLoss is CA_EVENT_LOSS.
const eventLoss = 3

// control runs the congestion control of a scheme: its struct_ops, on sockets in its memory.
type control struct {
	*module
	maps *hostMaps

	state uint32 // address of struct simulator
	// The operations; nil if the control has none. setRate, cnp and cnm are those of the wiring.
	init, congControl, inAck, congAvoid, ssthresh, setState, cwndEvent *function
	setRate, cnp, cnm                                                  *function

	sample uint32 // address of a struct rate_sample

	current *flow // whose program runs

	// The senders of each line rate of hosts, and the rate whose variables the module has.
	senders  map[uint64]sender
	lineRate uint64

	socks, entries pool // of flows
	sock           sockFields
	rs             sampleFields
	entry          flowFields
}

// sockFields are offsets in struct tcp_sock.
type sockFields struct {
	una, nxt, cwnd, ssthresh, mss, srtt, retrans, delivered, deliveredCE, segments, payload,
	header, ecn, pacing, maxPacing uint32
}

// sampleFields are offsets in struct rate_sample.
type sampleFields struct{ rtt, acked, inFlight uint32 }

// flowFields are offsets in an entry of the flow table.
type flowFields struct {
	rate, recRate, decreases, increases, marked uint32
	firstRTT, firstEnd                          uint32
	hasFirstRTT                                 bool
}

// TCP's values at the start of a connection.
const (
	initialWindow = 10
	noThreshold   = 0x7fffffff
	ecnOK         = 1  // TCP_ECN_OK
	tcpHeader     = 32 // with timestamps
	usShift       = 3  // srtt_us is in eighths
)

// Offsets in struct simulator (bpf/include/simulator.h): of now_ns, flow, flows and random.
const (
	simulatorNow    = 0
	simulatorFlow   = 8
	simulatorFlows  = 16
	simulatorRandom = 24
)

// newControl instantiates the control of a scheme with its variables for each line rate of hosts.
func newControl(
	ctx context.Context, r runtime, s scheme.Scheme, code []byte,
	senders map[uint64]sender, seed uint32,
) (*control, error) {
	c := &control{maps: &hostMaps{maps: map[uint32]*hostMap{}}, senders: senders}
	if err := c.provide(ctx, r); err != nil {
		return nil, err
	}
	m, err := newModule(ctx, r, s.Control, code)
	if err != nil {
		return nil, err
	}
	c.module = m
	spec, err := s.Object.Types()
	if err != nil {
		return nil, err
	}
	programs, err := s.Object.Programs()
	if err != nil {
		return nil, err
	}
	c.maps.bind(m, spec)
	m.set("dilation_shift", binary.LittleEndian.AppendUint32(nil, dilation))
	if s.TCD {
		m.set("tcd", []byte{1})
	}
	c.findPrograms(programs)
	if err := c.findFields(spec); err != nil {
		return nil, err
	}
	needed, err := m.need("simulator")
	if err != nil {
		return nil, err
	}
	c.state = uint32(needed[0].call())
	m.put32(c.state+simulatorRandom, seed)
	if flows, ok := m.global("flows"); ok {
		m.put64(c.state+simulatorFlows, uint64(flows))
	}
	sampleBytes, err := layout{spec.Types}.size("rate_sample")
	if err != nil { // a control without programs that get one
		sampleBytes = 64
	}
	c.sample, err = m.alloc(sampleBytes)
	return c, err
}

// forget drops what the control refers to. The cache of machine code keeps the functions that
// modules import, and with them the control: so it kept a run's flows and memory for the next one.
func (w *world) forget() {
	for _, x := range w.worlds() {
		if c := x.transport.control; c != nil {
			*c.maps = hostMaps{}
			*c = control{}
		}
	}
}

// provide gives programs what they import of the simulator.
func (c *control) provide(ctx context.Context, r runtime) error {
	h := c.maps
	err := r.provide(ctx, "simulator", map[string]any{"map_lookup": h.lookup,
		"map_update": h.update, "map_delete": h.remove, "reno": c.reno})
	if err != nil {
		return fmt.Errorf("provide programs with maps: %w", err)
	}
	return nil
}

// findPrograms finds the operations by their sections in the BPF object.
func (c *control) findPrograms(programs map[string]string) {
	slots := map[string]**function{
		"init": &c.init, "cong_control": &c.congControl, "in_ack_event": &c.inAck,
		"cong_avoid": &c.congAvoid, "ssthresh": &c.ssthresh, "set_state": &c.setState,
		"cwnd_event": &c.cwndEvent,
	}
	for operation, slot := range slots {
		if name, ok := programs["struct_ops/"+operation]; ok {
			*slot = c.function(name)
		}
	}
	c.setRate, c.cnp, c.cnm = c.function("simulate_rate"), c.function("simulate_cnp"),
		c.function("simulate_cnm")
}

// findFields finds the fields that the simulator reads and writes.
func (c *control) findFields(spec *ebpf.CollectionSpec) error {
	l := layout{spec.Types}
	var err error
	sockBytes, err := l.size("tcp_sock")
	if err != nil {
		return err
	}
	c.socks = newPool(sockBytes)
	o := &offsets{layout: l, name: "tcp_sock"}
	c.sock = sockFields{
		una: o.of("snd_una"), nxt: o.of("snd_nxt"), cwnd: o.of("snd_cwnd"),
		ssthresh: o.of("snd_ssthresh"), mss: o.of("mss_cache"), srtt: o.of("srtt_us"),
		retrans: o.of("total_retrans"), delivered: o.of("delivered"),
		deliveredCE: o.of("delivered_ce"), segments: o.of("data_segs_out"),
		payload: o.of("bytes_sent"),
		header:  o.of("tcp_header_len"), ecn: o.of("ecn_flags"),
		pacing: o.of("sk_pacing_rate"), maxPacing: o.of("sk_max_pacing_rate"),
	}
	if o.err != nil {
		return o.err
	}
	if _, err := l.structOf("rate_sample"); err == nil {
		o := &offsets{layout: l, name: "rate_sample"}
		c.rs = sampleFields{rtt: o.of("rtt_us"), acked: o.of("acked_sacked"),
			inFlight: o.of("prior_in_flight")}
		if o.err != nil {
			return o.err
		}
	}
	return c.findEntry(spec)
}

// findEntry finds the fields of the flow table's entries; a control may have no table.
func (c *control) findEntry(spec *ebpf.CollectionSpec) error {
	flows := spec.Maps["flows"]
	if flows == nil {
		return nil
	}
	entry, ok := btf.UnderlyingType(flows.Value).(*btf.Struct)
	if !ok {
		return fmt.Errorf("control %s: the values of its flow table are no struct", c.name)
	}
	c.entries = newPool(flows.ValueSize)
	var failed error
	of := func(path string) uint32 {
		offset, err := offsetIn(entry, path)
		if failed == nil {
			failed = err
		}
		return offset
	}
	c.entry = flowFields{
		rate: of("sender.send_rate_bps"), recRate: of("sender.rec_rate_bps"),
		decreases: of("sender.cnp_decrease"), increases: of("sender.cnp_increase"),
		marked: of("sender.marked_packets"),
	}
	if failed != nil {
		return failed
	}
	var err1, err2 error
	c.entry.firstRTT, err1 = offsetIn(entry, "first_rtt")
	c.entry.firstEnd, err2 = offsetIn(entry, "first_end")
	c.entry.hasFirstRTT = err1 == nil && err2 == nil
	return nil
}

// hasRate reports whether flows are paced at a rate of the control.
func (c *control) hasRate() bool { return c.setRate != nil }

// at sets the time and the flow of the next calls.
func (c *control) at(now int64, f *flow) {
	c.current = f
	if f.lineRate != c.lineRate {
		c.become(f.lineRate)
	}
	c.put64(c.state+simulatorNow, uint64(now)<<dilation)
	c.put64(c.state+simulatorFlow, uint64(f.entry))
}

// become gives the module the variables of hosts with a line rate.
func (c *control) become(rate uint64) {
	c.lineRate = rate
	for name, value := range c.senders[rate].variables {
		c.set(name, value)
	}
}

// establish gives the flow a socket and an entry, and starts its control. rateBps is the rate at
// which it starts, if it has one.
func (c *control) establish(now int64, f *flow, mss uint32, ecn bool, rateBps uint64) error {
	var err error
	if f.sock, err = c.socks.take(c.module); err != nil {
		return err
	}
	if f.entry, err = c.entries.take(c.module); err != nil {
		return err
	}
	c.put32(f.sock+c.sock.cwnd, initialWindow)
	c.put32(f.sock+c.sock.ssthresh, noThreshold)
	c.put32(f.sock+c.sock.mss, mss)
	c.put16(f.sock+c.sock.header, tcpHeader)
	c.put64(f.sock+c.sock.maxPacing, ^uint64(0))
	c.put64(f.sock+c.sock.pacing, ^uint64(0))
	if ecn {
		c.put8(f.sock+c.sock.ecn, ecnOK)
	}
	c.at(now, f)
	if c.init != nil {
		c.init.stack[0] = uint64(f.sock)
		c.init.call()
	}
	if c.setRate != nil {
		c.setRate.stack[0] = rateBps
		c.setRate.call()
	}
	return nil
}

// rateBps returns the rate at which the flow is paced.
func (c *control) rateBps(f *flow) uint64 { return c.u64(f.entry + c.entry.rate) }

// window returns how many packets may be in flight.
func (c *control) window(f *flow) uint32 { return c.u32(f.sock + c.sock.cwnd) }

func (c *control) setWindow(f *flow, packets uint32) { c.put32(f.sock+c.sock.cwnd, packets) }

func (c *control) slowStartThreshold(f *flow) uint32 { return c.u32(f.sock + c.sock.ssthresh) }

func (c *control) setThreshold(f *flow, packets uint32) {
	c.put32(f.sock+c.sock.ssthresh, packets)
}

// gapNs returns the time between two packets that the control asks for beside its window; 0: none.
func (c *control) gapNs(f *flow, payload uint64) int64 {
	rate := c.u64(f.sock + c.sock.pacing)
	if rate == ^uint64(0) || rate == 0 {
		return 0
	}
	return int64(payload * 1_000_000_000 / rate >> dilation)
}

// write writes what TCP knows of the flow to its socket.
func (c *control) write(f *flow) {
	s := f.sock
	c.put32(s+c.sock.una, f.una*f.mss)
	c.put32(s+c.sock.nxt, f.nxt*f.mss)
	c.put32(s+c.sock.srtt, kernelUs(f.srttNs)<<usShift)
	c.put32(s+c.sock.delivered, f.delivered)
	c.put32(s+c.sock.deliveredCE, f.deliveredCE)
	c.put32(s+c.sock.segments, f.segments)
	c.put64(s+c.sock.payload, f.payloadBytes)
	c.put32(s+c.sock.retrans, f.retransmissions)
}

// kernelUs converts a time to us of the kernel's clock, so that no ns is lost on the way back.
func kernelUs(ns int64) uint32 { return uint32((uint64(ns)<<dilation + 999) / 1000) }

// ack tells the control of an ACK that newly acknowledged so many packets. rttNs is 0 if it was not
// measured; before is what was in flight before the ACK.
func (c *control) ack(now int64, f *flow, acked, before uint32, rttNs int64) {
	c.at(now, f)
	c.write(f)
	if c.inAck != nil {
		c.inAck.stack[0], c.inAck.stack[1] = uint64(f.sock), 0
		c.inAck.call()
	}
	if c.congControl == nil {
		return
	}
	rtt := int64(-1)
	if rttNs > 0 {
		rtt = int64(kernelUs(rttNs))
	}
	c.put64(c.sample+c.rs.rtt, uint64(rtt))
	c.put32(c.sample+c.rs.acked, acked)
	c.put32(c.sample+c.rs.inFlight, before)
	stack := &c.congControl.stack
	stack[0], stack[1], stack[2], stack[3] = uint64(f.sock), 0, 0, uint64(c.sample)
	c.congControl.call()
}

// changeState tells the control that TCP enters a state.
func (c *control) changeState(now int64, f *flow, state uint8) {
	c.at(now, f)
	c.write(f)
	if state == stateLoss && c.cwndEvent != nil {
		c.cwndEvent.stack[0], c.cwndEvent.stack[1] = uint64(f.sock), eventLoss
		c.cwndEvent.call()
	}
	if c.setState != nil {
		c.setState.stack[0], c.setState.stack[1] = uint64(f.sock), uint64(state)
		c.setState.call()
	}
}

// threshold asks the control for the window behind a mark or a loss.
func (c *control) threshold(now int64, f *flow) uint32 {
	c.at(now, f)
	c.write(f)
	if c.ssthresh == nil {
		return max(c.window(f)/2, 2)
	}
	c.ssthresh.stack[0] = uint64(f.sock)
	return uint32(c.ssthresh.call())
}

// grow lets the control raise the window.
func (c *control) grow(now int64, f *flow, acked uint32) {
	if c.congAvoid == nil {
		return
	}
	c.at(now, f)
	c.congAvoid.stack[0], c.congAvoid.stack[1], c.congAvoid.stack[2] =
		uint64(f.sock), 0, uint64(acked)
	c.congAvoid.call()
}

// hearCNP hands the flow a CNP.
func (c *control) hearCNP(now int64, f *flow, n notification) {
	if c.cnp == nil {
		return
	}
	c.at(now, f)
	c.cnp.stack[0], c.cnp.stack[1], c.cnp.stack[2] = uint64(n.recRate()), n.ce(), n.ue()
	c.cnp.call()
}

// hearCNM hands the flow a CNM.
func (c *control) hearCNM(now int64, f *flow, feedback uint32) {
	if c.cnm == nil {
		return
	}
	c.at(now, f)
	c.cnm.stack[0] = uint64(feedback)
	c.cnm.call()
}

// inFirstRTT reports whether a packet that ends at a sequence number is to be not ECN-capable.
func (c *control) inFirstRTT(f *flow, end uint32) bool {
	return c.entry.hasFirstRTT && c.u32(f.entry+c.entry.firstRTT) != 0 &&
		int32(end-c.u32(f.entry+c.entry.firstEnd)) < 0
}

// reno raises the window of the flow that runs, as Linux does: by each packet in slow start, and
// then by one a window.
func (c *control) reno(_, _, acked uint32) {
	f := c.current
	if !f.limited {
		return
	}
	window, threshold := c.window(f), c.u32(f.sock+c.sock.ssthresh)
	if window < threshold {
		grown := min(window+acked, threshold)
		acked -= grown - window
		window = grown
	}
	f.credit += acked
	if window >= threshold && f.credit >= window {
		f.credit -= window
		window++
	}
	c.setWindow(f, window)
}

// hostMaps are the maps of a control that are not its flow table.
type hostMaps struct {
	module *module
	maps   map[uint32]*hostMap // by address
}

type hostMap struct {
	keyBytes, valueBytes uint32
	entries              uint32            // of an array, which has all its values; else 0
	values               map[string]uint32 // address of each value
}

// bind finds the maps in the module.
func (h *hostMaps) bind(m *module, spec *ebpf.CollectionSpec) {
	h.module = m
	for name, s := range spec.Maps {
		if at, ok := m.global(name); ok {
			h.maps[at] = &hostMap{s.KeySize, s.ValueSize, 0, map[string]uint32{}}
			if s.Type == ebpf.Array || s.Type == ebpf.PerCPUArray {
				h.maps[at].entries = s.MaxEntries
			}
		}
	}
}

func (h *hostMaps) of(address, key uint32) (*hostMap, string) {
	m := h.maps[address]
	if m == nil {
		panic(trap{fmt.Errorf("control %s uses a map that the simulator does not know",
			h.module.name)})
	}
	return m, string(h.module.bytes(key, m.keyBytes))
}

func (h *hostMaps) lookup(address, key uint32) uint32 {
	m, k := h.of(address, key)
	at, ok := m.values[k]
	if !ok && h.module.u32(key) < m.entries {
		at = h.add(m, k)
	}
	return at
}

// add adds a value to a map, all zero.
func (h *hostMaps) add(m *hostMap, key string) uint32 {
	at, err := h.module.alloc(m.valueBytes)
	if err != nil {
		panic(trap{err})
	}
	m.values[key] = at
	return at
}

func (h *hostMaps) update(address, key, value uint32) uint32 {
	m, k := h.of(address, key)
	at, ok := m.values[k]
	if !ok {
		at = h.add(m, k)
	}
	h.module.write(at, h.module.bytes(value, m.valueBytes))
	return 0
}

func (h *hostMaps) remove(address, key uint32) uint32 {
	m, k := h.of(address, key)
	delete(m.values, k)
	return 0
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
