// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/loader"
)

// Stamp gives packets their class (tc/bpf/stamp.bpf.c).
type Stamp struct{ object }

// StampOptions are the classes that a host's packets have.
type StampOptions struct {
	DataDSCP, ControlDSCP uint8 // of data and of control packets, 0 to 63
	// DataClasses are the classes, 0 to 7, that data keeps if its socket gave it a DSCP of one;
	// other data gets DataDSCP.
	DataClasses []uint8
	// make the source MAC address of the IPv4 source, so that switches' CNMs find back
	AddressMAC bool
	ECT1       bool // ECN-capable packets say so by ECT(1): TCD marks them ECT(0) for UE
}

// LoadStamp loads it.
func LoadStamp(o StampOptions, options ...Option) (*Stamp, error) {
	if o.DataDSCP > 63 || o.ControlDSCP > 63 {
		return nil, fmt.Errorf("stamp: DSCP %d and %d: want 0 to 63", o.DataDSCP, o.ControlDSCP)
	}
	var classes uint8 // a bit each
	for _, c := range o.DataClasses {
		if c > 7 {
			return nil, fmt.Errorf("stamp: data class %d: want 0 to 7", c)
		}
		classes |= 1 << c
	}
	spec, err := loadStamp()
	if err != nil {
		return nil, err
	}
	obj, err := load("stamp", spec, map[string]any{
		"data_dscp": o.DataDSCP, "control_dscp": o.ControlDSCP, "data_classes": classes,
		"address_mac": o.AddressMAC, "ect1": o.ECT1,
	}, nil, options...)
	if err != nil {
		return nil, err
	}
	return &Stamp{obj}, nil
}

// Attach puts it last at the device's egress.
func (s *Stamp) Attach(h netns.NsHandle, ifindex int) error {
	return s.attachAll(h, ifindex, s.Places())
}

// PlainSYN makes SYNs not ECN-capable (tc/bpf/syn.bpf.c): servers without PCN's controls then agree
// to ECN.
type PlainSYN struct{ object }

// LoadPlainSYN loads it.
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

// Attach puts it first at the device's egress.
func (s *PlainSYN) Attach(h netns.NsHandle, ifindex int) error {
	return s.attachAll(h, ifindex, s.Places())
}

// FirstRTT makes packets of the first round trip not ECN-capable (bpf/include/first_rtt.h).
type FirstRTT struct{ object }

// firstRTT is the program's name, in the object of a control.
const firstRTT = "first_rtt"

// LoadFirstRTT loads it for the flows of a control that treats these packets in a way of their own.
func LoadFirstRTT(control *loader.Control, options ...Option) (*FirstRTT, error) {
	// or another process's of that name
	if !control.Scheme().HasFirstRTT() || control.FlowTable() == nil {
		return nil,
			fmt.Errorf("first_rtt: congestion control %s has no first round trip: want one such as ldcp",
				control.Name())
	}
	spec, err := control.Scheme().Object.Spec()
	if err != nil {
		return nil, err
	}
	keepProgram(spec, firstRTT)
	obj, err := load(firstRTT, spec, nil, map[string]*ebpf.Map{rpFlows: control.FlowTable()},
		options...)
	if err != nil {
		return nil, err
	}
	return &FirstRTT{obj}, nil
}

// keepProgram leaves one program in an object.
func keepProgram(spec *ebpf.CollectionSpec, name string) {
	loader.Prune(spec, func(p *ebpf.ProgramSpec) bool { return p.Name == name })
}

// Attach puts it first at the device's egress.
func (f *FirstRTT) Attach(h netns.NsHandle, ifindex int) error {
	return f.attachAll(h, ifindex, f.Places())
}

// ArriveOptions are those of a lab host's first ingress program.
type ArriveOptions struct {
	SampleNs uint64 // bin of the sampled series; 0: none
	SinkPort uint16 // UDP port whose datagrams are counted and dropped
	MaxFlows uint32 // that are tracked; 0: 4096
	// where samples go: the port qdisc's ring buffer; may be nil if there are none
	Events        *ebpf.Map
	DilationShift uint32
}

// Arrive counts what arrives at a lab's hosts (tc/bpf/arrive.bpf.c).
type Arrive struct{ object }

// Arrival is what has arrived of one flow. Times are ideal, on the papers' clock.
type Arrival struct {
	Packets, MarkedPackets uint64
	PayloadBytes           uint64 // what TCP or UDP carried
	FirstNs, LastNs        uint64 // 0: none yet
	// start of the sample bin that is not over, and what is in it
	BinNs                        uint64
	BinBytes                     uint64
	BinPackets, BinMarkedPackets uint32
}

// LoadArrive loads it.
func LoadArrive(o ArriveOptions) (*Arrive, error) {
	shared := map[string]*ebpf.Map{}
	if o.Events != nil {
		shared["events"] = o.Events
	} else if o.SampleNs != 0 {
		return nil,
			fmt.Errorf("arrive: samples every %d ns, but no ring buffer for them: set Events",
				o.SampleNs)
	}
	spec, err := loadArrive()
	if err != nil {
		return nil, err
	}
	if o.MaxFlows != 0 {
		spec.Maps["arrivals"].MaxEntries = o.MaxFlows
	}
	obj, err := load("arrive", spec, map[string]any{
		"sample_ns":      o.SampleNs,
		"sink_port":      o.SinkPort,
		"dilation_shift": o.DilationShift,
	}, shared)
	if err != nil {
		return nil, err
	}
	return &Arrive{obj}, nil
}

// Attach puts it first at the device's ingress, and what sends its CNMs first at egress.
func (a *Arrive) Attach(h netns.NsHandle, ifindex int) error {
	if err := a.attach(h, ifindex, cnmEgress, ebpf.AttachTCXEgress, link.Head()); err != nil {
		return err
	}
	return a.attach(h, ifindex, "arrive", ebpf.AttachTCXIngress, link.Head())
}

// Track counts a flow from now on; its samples carry id.
func (a *Arrive) Track(k loader.FlowKey, id uint32) error {
	if err := a.coll.Maps["arrivals"].Put(k, &arriveArrival{Id: id}); err != nil {
		return fmt.Errorf("track flow %s: %w", k, err)
	}
	return nil
}

// Flow reads what has arrived of a tracked flow.
func (a *Arrive) Flow(k loader.FlowKey, sampleNs uint64) (Arrival, error) {
	var v arriveArrival
	if err := a.coll.Maps["arrivals"].Lookup(k, &v); err != nil {
		return Arrival{}, fmt.Errorf("read arrivals of flow %s: %w", k, err)
	}
	return Arrival{
		Packets: v.Packets, PayloadBytes: v.PayloadBytes, MarkedPackets: v.MarkedPackets,
		FirstNs: v.FirstNs, LastNs: v.LastNs,
		BinNs: v.Bin * sampleNs, BinBytes: v.BinBytes, BinPackets: v.BinPackets,
		BinMarkedPackets: v.BinMarkedPackets,
	}, nil
}

// EventsLost is how many samples found the ring buffer full.
func (a *Arrive) EventsLost() (uint64, error) {
	var n uint64
	if err := a.coll.Variables["flow_events_lost"].Get(&n); err != nil {
		return 0, fmt.Errorf("read lost flow events: %w", err)
	}
	return n, nil
}
