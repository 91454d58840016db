// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/loader"
)

// Stamp sets the class of packets, as DSCP (tc/bpf/stamp.bpf.c).
type Stamp struct{ object }

// StampOptions holds the classes of a host's packets.
type StampOptions struct {
	DataDSCP, ControlDSCP uint8 // of data and of control packets, 0 to 63
	// DataClasses are the classes, 0 to 7, that data keeps if its socket set a DSCP of one. Other
	// data gets DataDSCP.
	DataClasses []uint8
	// derive the source MAC address from the IPv4 source, so that switches' CNMs reach the sender
	AddressMAC bool
	ECT1       bool // use ECT(1) for ECN-capable packets: TCD changes it to ECT(0) for UE
	// AcksAsData and CNPsAsData give these the class of data for switches: that of their socket's
	// DSCP. In the host's own port they stay in the control class. They need OnlyPlain.
	AcksAsData, CNPsAsData bool
	// OnlyPlain says that no packet is IPv6 or behind a VLAN tag, as in a lab.
	OnlyPlain bool
	// Fragments says that fragments, and IPv4 with options, get a DSCP too, by their protocol.
	Fragments bool
}

// LoadStamp loads the program; it fails for classes and DSCPs that are out of range.
func LoadStamp(o StampOptions, options ...Option) (*Stamp, error) {
	if o.DataDSCP > 63 || o.ControlDSCP > 63 {
		return nil, fmt.Errorf("stamp: DSCP %d and %d: want 0 to 63", o.DataDSCP, o.ControlDSCP)
	}
	if (o.AcksAsData || o.CNPsAsData) && !o.OnlyPlain {
		return nil, errors.New("stamp: ACKs and CNPs as data are for plain IPv4: set OnlyPlain")
	}
	var classes uint8 // bit i is class i
	for _, c := range o.DataClasses {
		if c > 7 {
			return nil, fmt.Errorf("stamp: data class %d: want 0 to 7", c)
		}
		classes |= 1 << c
	}
	read := loadStamp
	if o.OnlyPlain {
		read = loadStamplab
	}
	spec, err := read()
	if err != nil {
		return nil, err
	}
	obj, err := load("stamp", spec, map[string]any{
		"data_dscp": o.DataDSCP, "control_dscp": o.ControlDSCP, "data_classes": classes,
		"address_mac": o.AddressMAC, "ect1": o.ECT1,
		"acks_as_data": o.AcksAsData, "cnps_as_data": o.CNPsAsData, "fragments": o.Fragments,
	}, nil, options...)
	if err != nil {
		return nil, err
	}
	return &Stamp{obj}, nil
}

// Attach attaches it last at the device's egress.
func (s *Stamp) Attach(h netns.NsHandle, ifindex int) error {
	return s.attachAll(h, ifindex, s.Places())
}

// PlainSYN makes SYNs not ECN-capable (tc/bpf/syn.bpf.c): only then do servers without PCN's
// controls agree to ECN.
type PlainSYN struct{ object }

// LoadPlainSYN loads the program.
func LoadPlainSYN(opts ...Option) (*PlainSYN, error) {
	spec, err := loadSyn()
	if err != nil {
		return nil, err
	}
	obj, err := load("syn", spec, nil, nil, opts...)
	if err != nil {
		return nil, err
	}
	return &PlainSYN{obj}, nil
}

// Attach attaches it first at the device's egress.
func (s *PlainSYN) Attach(h netns.NsHandle, ifindex int) error {
	return s.attachAll(h, ifindex, s.Places())
}

// FirstRTT makes packets of the first round trip not ECN-capable (bpf/include/first_rtt.h).
type FirstRTT struct{ object }

// firstRTT is the program's name in the object of a control.
const firstRTT = "first_rtt"

// LoadFirstRTT loads the program for the flows of a control; it fails unless the control's scheme
// treats first-round-trip packets specially.
func LoadFirstRTT(control *loader.Control, options ...Option) (*FirstRTT, error) {
	// without this: a control of that name of another process
	if !control.Scheme().HasFirstRTT() || control.FlowTable() == nil {
		return nil,
			fmt.Errorf("first_rtt: congestion control %s does not treat the first round trip "+
				"specially: want one such as ldcp",
				control.Name())
	}
	spec, err := control.Scheme().Object.Spec()
	if err != nil {
		return nil, err
	}
	keepProgram(spec, firstRTT)
	netns := control.Variables()[loader.NetnsKeysVariable]
	if netns == nil {
		netns = false // it was registered by another process
	}
	vars := map[string]any{loader.NetnsKeysVariable: netns}
	obj, err := load(firstRTT, spec, vars, map[string]*ebpf.Map{rpFlows: control.FlowTable()},
		options...)
	if err != nil {
		return nil, err
	}
	return &FirstRTT{obj}, nil
}

// keepProgram removes all programs but one from an object.
func keepProgram(spec *ebpf.CollectionSpec, name string) {
	loader.Prune(spec, func(p *ebpf.ProgramSpec) bool { return p.Name == name })
}

// Attach attaches it first at the device's egress.
func (f *FirstRTT) Attach(h netns.NsHandle, ifindex int) error {
	return f.attachAll(h, ifindex, f.Places())
}

// ArriveOptions holds the parameters of [Arrive].
type ArriveOptions struct {
	SampleNs uint64 // bin of the sampled series; 0 samples nothing
	SinkPort uint16 // UDP port whose datagrams are counted and dropped
	MaxFlows uint32 // tracked flows at most; 0 means 4096
	// ring buffer of the port qdisc for the samples; may be nil if SampleNs is 0
	Events *ebpf.Map
	// the port qdisc's map of what came to each host last; nil if there is no such port
	HostArrivals  *ebpf.Map
	DilationShift uint32
	Unsampled     bool // no port samples for CNMs
}

// portsSample is the value of the programs' variable ports_sample.
func portsSample(unsampled bool) uint32 {
	if unsampled {
		return 0
	}
	return 1
}

// Arrive counts what arrives at a lab's hosts (tc/bpf/arrive.bpf.c). It is their first ingress
// program.
type Arrive struct {
	object
	unsampled bool
	tracked   map[loader.FlowKey]uint32 // their places in the map of arrivals
}

// Arrival counts what has arrived of one flow. Times are ideal times on the papers' clock.
type Arrival struct {
	Packets, MarkedPackets uint64
	PayloadBytes           uint64 // payload of TCP or UDP
	FirstNs, LastNs        uint64 // of the first and last packet; 0 before the first
	// start and content of the sample bin that is still open
	BinNs                        uint64
	BinBytes                     uint64
	BinPackets, BinMarkedPackets uint32
}

// LoadArrive loads the program.
func LoadArrive(o ArriveOptions) (*Arrive, error) {
	shared := map[string]*ebpf.Map{}
	if o.Events != nil {
		shared["events"] = o.Events
	} else if o.SampleNs != 0 {
		return nil,
			fmt.Errorf("arrive: Events is nil with SampleNs %d: set Events to the port qdisc's "+
				"ring buffer",
				o.SampleNs)
	}
	if o.HostArrivals != nil {
		shared["host_arrivals"] = o.HostArrivals
	}
	spec, err := loadArrive()
	if err != nil {
		return nil, err
	}
	if o.MaxFlows != 0 {
		spec.Maps["arrivals"].MaxEntries = o.MaxFlows
		spec.Maps["arrival_index"].MaxEntries = o.MaxFlows
	}
	obj, err := load("arrive", spec, map[string]any{
		"sample_ns":      o.SampleNs,
		"ports_sample":   portsSample(o.Unsampled),
		"sink_port":      o.SinkPort,
		"dilation_shift": o.DilationShift,
	}, shared)
	if err != nil {
		return nil, err
	}
	return &Arrive{obj, o.Unsampled, map[loader.FlowKey]uint32{}}, nil
}

// Attach attaches it first at the device's ingress, and its sender of CNMs first at egress.
func (a *Arrive) Attach(h netns.NsHandle, ifindex int) error {
	if err := a.attachCNMs(h, ifindex, a.unsampled); err != nil {
		return err
	}
	return a.attach(h, ifindex, "arrive", ebpf.AttachTCXIngress, link.Head())
}

// Track starts to count a flow, whose samples carry id. Call it from one goroutine at a time.
func (a *Arrive) Track(k loader.FlowKey, id uint32) error {
	if err := a.track(k, id); err != nil {
		return fmt.Errorf("track flow %s: %w", k, err)
	}
	return nil
}

func (a *Arrive) track(k loader.FlowKey, id uint32) error {
	index, again := a.tracked[k]
	if !again {
		index = uint32(len(a.tracked))
		a.tracked[k] = index
	}
	if err := a.coll.Maps["arrivals"].Put(index, &arriveArrival{Id: id}); err != nil {
		return err
	}
	if err := a.coll.Maps["arrival_index"].Put(k, index); err != nil {
		return err
	}
	return a.coll.Variables["tracked"].Set(uint32(len(a.tracked)))
}

// Flow reads the arrivals of a tracked flow.
func (a *Arrive) Flow(k loader.FlowKey, sampleNs uint64) (Arrival, error) {
	var v arriveArrival
	index, tracked := a.tracked[k]
	if !tracked {
		return Arrival{}, fmt.Errorf("read arrivals of flow %s: it is not tracked: %w", k,
			ebpf.ErrKeyNotExist)
	}
	if err := a.coll.Maps["arrivals"].Lookup(index, &v); err != nil {
		return Arrival{}, fmt.Errorf("read arrivals of flow %s: %w", k, err)
	}
	return Arrival{
		Packets: v.Packets, PayloadBytes: v.PayloadBytes, MarkedPackets: v.MarkedPackets,
		FirstNs: v.FirstNs, LastNs: v.LastNs,
		BinNs: v.Bin * sampleNs, BinBytes: v.BinBytes, BinPackets: v.BinPackets,
		BinMarkedPackets: v.BinMarkedPackets,
	}, nil
}

// EventsLost returns how many samples found the ring buffer full.
func (a *Arrive) EventsLost() (uint64, error) {
	var n uint64
	if err := a.coll.Variables["flow_events_lost"].Get(&n); err != nil {
		return 0, fmt.Errorf("read lost flow events: %w", err)
	}
	return n, nil
}
