// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

// What only the simulator has stands here: RoCE's transport, flows that leave after a time, and
// switches that spread packets; and links that fail during the run, which Linux has without PFC.

// needsSim notes a key that only the simulator knows, if the file has it. It fails if the
// experiment is for another engine.
func (d *decoder) needsSim(e *Experiment, path string) {
	if d.has(path) {
		d.onlySim(e, path, fmt.Sprintf("%q is in the simulator only", keyOf(path)))
	}
}

// onlySim is needsSim for what is not a key, with a message. It fails at the first only: all have
// one mistake, that of the engine.
func (d *decoder) onlySim(e *Experiment, path, msg string) {
	e.simOnly = append(e.simOnly, path)
	if e.Engine != EngineSim && len(e.simOnly) == 1 {
		d.fail(path, msg, "write engine: sim at the top of the file")
	}
}

// onlySimulated fails if a scheme needs what only the simulator's switches do.
func (e *Experiment) onlySimulated(name string) error {
	s, err := e.Scheme(name)
	if err != nil {
		return nil // unknown ones are reported elsewhere
	}
	return s.OnlySimulated()
}

// validateTelemetry fails if the file is for an engine whose switches write no telemetry, and has
// schemes that need it. The command line may choose others of both: see [Experiment.CheckEngine].
func (d *decoder) validateTelemetry(e *Experiment) {
	if d.chosen.Schemes != nil {
		return
	}
	for i, name := range e.Schemes {
		if err := e.onlySimulated(name); err != nil && e.Engine != EngineSim {
			d.fail(fmt.Sprintf("schemes[%d]", i), err.Error(),
				"write engine: sim at the top of the file")
			return
		}
	}
}

// keyOf returns the last key of a path.
func keyOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// CheckEngine fails if an engine can't run the experiment, because only the simulator has what the
// file asks for.
func (e *Experiment) CheckEngine(engine Engine) error {
	if len(e.Programs) > 0 && engine != EngineKernel {
		return fmt.Errorf("engine %s runs no programs: run it with `--engine kernel`, or remove "+
			"programs: from experiment %s", engine, e.Name)
	}
	if len(e.linuxOnly) > 0 && engine != EngineKernel {
		return fmt.Errorf("engine %s has no %s: run it with `--engine kernel`, or remove it from "+
			"experiment %s", engine, e.linuxOnly[0], e.Name)
	}
	if engine == EngineSim {
		return nil
	}
	for _, name := range e.Schemes {
		if err := e.onlySimulated(name); err != nil {
			return fmt.Errorf("engine %s: %w: run it with `--engine sim`, or choose another scheme",
				engine, err)
		}
	}
	if len(e.simOnly) == 0 {
		return e.checkQdiscs()
	}
	return fmt.Errorf("engine %s has no %s: run it with `--engine sim`, or remove it from "+
		"experiment %s", engine, e.simOnly[0], e.Name)
}

// Transport is how hosts send what the scheme lets them send, and how they answer. But for Acks and
// CNP it is in the simulator only.
type Transport struct {
	// Recovery is how lost packets are sent again. Default sack.
	Recovery Recovery `yaml:"recovery"`
	// Window bounds what each flow has in flight, whatever its scheme allows. A size of 1 frame to
	// 1GB, or bdp: line rate times the longest flow's round trip. Default none.
	Window Flight `yaml:"window"`
	// ScaleWindow makes Window proportional to the flow's rate: all of it at line rate, as with
	// VAR_WIN of HPCC's simulator. Default false.
	ScaleWindow bool `yaml:"scale_window"`
	// Acks is the class of ACKs in switches: control (default), before all data, or data, that of
	// their flow's data. Hosts send ACKs before data in both.
	Acks ReplyClass `yaml:"acks"`
	// AckSize is the length of an ACK's frame. 14B to 1500B, default 66B, TCP's.
	AckSize Bytes `yaml:"ack_size"`
	// CNP is how CNPs come to the sender: in packets of their own, of the class control or data as
	// ACKs, or in the simulator only on the next ACK of the flow (ack). Default: as Acks.
	CNP ReplyClass `yaml:"cnp"`
}

// ReplyClass is how receivers' packets are queued in switches.
type ReplyClass string

// The ways.
const (
	ReplyControl ReplyClass = "control"
	ReplyData    ReplyClass = "data"
	ReplyOnACK   ReplyClass = "ack" // of CNPs
)

// tcpAckBytes is the length of TCP's ACK: headers of Ethernet and IPv4, and TCP's with time stamps.
const tcpAckBytes = 66

// Recovery is how lost packets are sent again.
type Recovery string

// The ways of recovery.
const (
	// RecoverySACK sends each lost packet again, and tells the scheme of it as TCP does.
	RecoverySACK Recovery = "sack"
	// RecoveryGoBackN sends all packets from the lost one on again, as RoCE's network adapters do:
	// receivers take packets in order only, and the scheme does not hear of losses.
	RecoveryGoBackN Recovery = "go-back-n"
	// RecoveryGoBack0 sends the whole flow again, as the first of these adapters did.
	RecoveryGoBack0 Recovery = "go-back-0"
)

func recoveries() []Recovery { return []Recovery{RecoverySACK, RecoveryGoBackN, RecoveryGoBack0} }

// Flight is how much may be in flight.
type Flight struct {
	Bytes Bytes // 0: no bound
	BDP   bool  // line rate times the round trip
}

// flightBDP is the text for the product of bandwidth and delay.
const flightBDP = "bdp"

// UnmarshalYAML implements [yaml.Unmarshaler].
func (f *Flight) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == flightBDP {
		*f = Flight{BDP: true}
		return nil
	}
	return config.UnmarshalScalar(&f.Bytes, n, config.ParseBytes)
}

// String returns the text of a file.
func (f Flight) String() string {
	if f.BDP {
		return flightBDP
	}
	return f.Bytes.String()
}

func (d *decoder) validateTransport(e *Experiment) {
	for _, key := range []string{"recovery", "window", "scale_window", "ack_size"} {
		d.needsSim(e, "transport."+key)
	}
	if e.Transport.CNP == ReplyOnACK {
		d.needsSim(e, "transport.cnp")
	}
	if !d.has("transport.cnp") {
		e.Transport.CNP = e.Transport.Acks
	}
	t := e.Transport
	d.validateReplies(e)
	if t.CNP == ReplyData && len(e.DataClasses()) > 1 {
		d.onlySim(e, "transport.cnp", "CNPs that have the classes of flows of several priorities "+
			"are in the simulator only: on Linux write cnp: control")
	}
	d.checkKnown("transport.recovery", "recovery", string(t.Recovery), toStrings(recoveries()))
	if d.has("transport.window") && !t.Window.BDP {
		config.InRange(d.Decoder, "transport.window", t.Window.Bytes, e.Frame, 1e9)
	}
	if t.ScaleWindow && !d.has("transport.window") {
		d.fail("transport.scale_window", "\"scale_window\" needs \"window\"", "write window: bdp")
	}
}

// validateReplies checks how receivers answer.
func (d *decoder) validateReplies(e *Experiment) {
	t := e.Transport
	ways := []string{string(ReplyControl), string(ReplyData)}
	d.checkKnown("transport.acks", "class of ACKs", string(t.Acks), ways)
	d.checkKnown("transport.cnp", "way of CNPs", string(t.CNP), append(ways, string(ReplyOnACK)))
	config.InRange(d.Decoder, "transport.ack_size", t.AckSize, 14, 1500)
	if e.Switch.FlowControl == FlowCBFC && (t.Acks == ReplyData || t.CNP == ReplyData) {
		d.fail("transport", "hosts have no credits for ACKs and CNPs in the class of data",
			"write flow_control: pfc, or acks: control")
	}
}

// validateLasts checks how long flows last. On Linux a socket's buffer would still be sent.
func (d *decoder) validateLasts(e *Experiment, path string, f FlowGroup) {
	if !d.has(path + "lasts") {
		return
	}
	d.needsSim(e, path+"lasts")
	config.InRange(d.Decoder, path+"lasts", f.Lasts, Microsecond, maxDuration)
	if d.has(path + "size") {
		d.fail(path+"lasts", "a flow ends after its size or after a time, not both",
			"remove size: or lasts:")
	}
}

// ECMP is what a switch spreads over several shortest paths.
type ECMP string

// What switches spread.
const (
	ECMPFlow   ECMP = "flow"   // a flow's packets keep to one path
	ECMPPacket ECMP = "packet" // each packet takes one at random
)

func ecmps() []ECMP { return []ECMP{ECMPFlow, ECMPPacket} }

func (d *decoder) validateECMP(e *Experiment) {
	d.needsSim(e, "switch.ecmp")
	d.checkKnown("switch.ecmp", "way to spread", string(e.Switch.ECMP), toStrings(ecmps()))
	if e.Switch.ECMP == ECMPPacket && e.Switch.Detectors {
		d.fail("switch.ecmp", "detectors are judged by flows that have one path each",
			"remove switch.detectors, or write ecmp: flow")
	}
}

// LinkState is whether a link works.
type LinkState string

// The states of a link.
const (
	LinkUp   LinkState = "up"
	LinkDown LinkState = "down"
)

func linkStates() []LinkState { return []LinkState{LinkUp, LinkDown} }

// LinkStates reports whether links fail or come back during the run.
func (e *Experiment) LinkStates() bool {
	return slices.ContainsFunc(e.LinkEvents, func(l LinkEvent) bool { return l.State != "" })
}

// validateLinkState checks an event that a link fails or comes back. It returns the ports that
// Linux's qdisc tells of it.
func (d *decoder) validateLinkState(e *Experiment, path string, l LinkEvent) []string {
	if slices.ContainsFunc(e.Schemes, e.PFCOn) {
		d.onlySim(e, path+"state", "links that fail under PFC are in the simulator only: "+
			"on Linux write pfc: {off: true}")
	}
	d.checkKnown(path+"state", "state of a link", string(l.State), toStrings(linkStates()))
	if d.has(path + "rate") {
		d.fail(path+"rate", "a link has a new rate or a new state, not both",
			"make two entries of it")
	}
	if e.Switch.FlowControl == FlowCBFC {
		d.fail(path+"state", "credits are lost with a link", "write flow_control: pfc")
	}
	if e.Switch.Detectors {
		d.fail(path+"state", "detectors are judged by flows that have one path each",
			"remove switch.detectors")
	}
	if !d.hasRequired(path, "link") || d.unsure["link"] {
		return nil
	}
	net := e.Topology.Network()
	if unknown := net.UnknownLinks([]string{l.Port}); len(unknown) > 0 {
		d.fail(path+"link", fmt.Sprintf("unknown link %q", l.Port),
			"write L0-T3, the names of two nodes that are linked")
	}
	var ports []string
	for _, i := range net.LinksNamed(l.Port) {
		if names := net.Links[i].Ports(); e.Engine != EngineSim {
			ports = append(ports, names[:]...)
		}
	}
	return ports
}

// validateHostLinks notes hosts with several links.
func (d *decoder) validateHostLinks(e *Experiment) {
	t := &e.Topology
	if t.Imported == nil || d.FailedAt("topology.file") {
		return // hosts of our kinds have one link
	}
	links := map[string]int{}
	for _, l := range t.Network().Links {
		links[l.A]++
		links[l.B]++
		if d.isHost[l.A] && d.isHost[l.B] {
			d.onlySim(e, "topology.file", fmt.Sprintf("hosts %s and %s are linked to each other, "+
				"and such are in the simulator only", l.A, l.B))
			return
		}
	}
	for _, host := range d.hosts {
		if links[host] > 1 {
			d.onlySim(e, "topology.file",
				fmt.Sprintf("host %s has %d links, and several are in the simulator only", host,
					links[host]))
			return
		}
	}
}

// maxErrorRate is the most that a link may lose: with more, hardly anything arrives.
const maxErrorRate = Ratio(0.5)

// validatePauseTime checks a PAUSE that expires.
func (d *decoder) validatePauseTime(e *Experiment) {
	pfc := e.Switch.PFC
	d.needsSim(e, "switch.pfc.pause_time")
	if d.has("switch.pfc.pause_time") {
		config.InRange(d.Decoder, "switch.pfc.pause_time", pfc.PauseTime, Microsecond,
			10*Millisecond)
	}
	switch {
	case !d.has("switch.pfc.pause_repeat"):
	case pfc.PauseTime == 0:
		d.fail("switch.pfc.pause_repeat", "\"pause_repeat\" needs \"pause_time\"",
			"write pause_time: 5us")
	case pfc.PauseRepeat < 0 || pfc.PauseRepeat >= pfc.PauseTime:
		d.fail("switch.pfc.pause_repeat", fmt.Sprintf("%s is out of range", pfc.PauseRepeat),
			fmt.Sprintf("0 to less than pause_time, %s", pfc.PauseTime))
	}
}

// validateHeadroom checks parts of a switch's buffer that are not shared.
func (d *decoder) validateHeadroom(e *Experiment) {
	dynamic := e.Switch.PFC.Dynamic
	d.needsSim(e, "switch.pfc.dynamic.headroom")
	d.needsSim(e, "switch.pfc.dynamic.reserve")
	config.InRange(d.Decoder, "switch.pfc.dynamic.headroom", dynamic.Headroom, 0, 100)
	config.InRange(d.Decoder, "switch.pfc.dynamic.reserve", dynamic.Reserve, 0, 1e6)
	if (dynamic.Headroom != 0 || dynamic.Reserve != 0) && !d.FailedAt("topology") {
		d.checkShared(e)
	}
}

// checkShared fails if headroom and reserve leave nothing of a switch's buffer.
func (d *decoder) checkShared(e *Experiment) {
	kept := map[string]uint64{}
	for _, l := range e.Topology.Network().Links {
		own := e.Switch.PFC.Dynamic.OwnBytes(l.RateBps, l.DelayNs)
		kept[l.A] += own
		kept[l.B] += own
	}
	for _, name := range e.Topology.Network().Switches {
		buffer := cmp.Or(e.Switch.OwnOf(name).Buffer, e.Switch.Buffer)
		if kept[name] >= uint64(buffer) {
			d.fail("switch.pfc.dynamic", fmt.Sprintf("headroom and reserve of the ports of %s "+
				"need %s of its buffer of %s", name, Bytes(kept[name]), buffer),
				"raise switch.buffer")
			return
		}
	}
}

// HeadroomBytes returns the headroom of an ingress port.
func (d *DynamicPFC) HeadroomBytes(rateBps, delayNs uint64) uint64 {
	return uint64(float64(d.Headroom) * float64(rateBps) * float64(delayNs) / 8e9)
}

// OwnBytes returns what an ingress port has of a switch's buffer for itself.
func (d *DynamicPFC) OwnBytes(rateBps, delayNs uint64) uint64 {
	return d.HeadroomBytes(rateBps, delayNs) + uint64(d.Reserve)
}

// priorities returns how many priorities the engine of the file has.
func (e *Experiment) priorities() int {
	if e.Engine == EngineSim {
		return SimPriorities
	}
	return Priorities
}

// validatePriority checks a priority, of which the simulator has more.
func (d *decoder) validatePriority(e *Experiment, path string, priority int) {
	config.CountInRange(d.Decoder, path, priority, 0, e.priorities()-1)
	if priority >= Priorities {
		e.simOnly = append(e.simOnly, path)
	}
}
