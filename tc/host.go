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

// Stamp gives packets their class (tc/bpf/stamp.bpf.c).
type Stamp struct{ object }

// StampOptions are the classes that a host's packets have.
type StampOptions struct {
	DataDSCP, ControlDSCP uint8 // of data and of control packets, 0 to 63
	// DataClasses are the classes, 0 to 7, that data keeps if its socket gave it a DSCP of one; other data gets DataDSCP.
	DataClasses []uint8
	AddressMAC  bool // make the source MAC address of the IPv4 source, so that switches' CNMs find back
	ECT1        bool // ECN-capable packets say so by ECT(1): TCD marks them ECT(0) for UE
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
		"data_dscp": o.DataDSCP, "control_dscp": o.ControlDSCP, "data_classes": classes, "address_mac": o.AddressMAC, "ect1": o.ECT1,
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

// PlainSYN makes SYNs not ECN-capable (tc/bpf/syn.bpf.c): servers without PCN's controls then agree to ECN.
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

// Attach puts it last at the device's egress.
func (s *PlainSYN) Attach(h netns.NsHandle, ifindex int) error {
	return s.attachAll(h, ifindex, s.Places())
}

// FirstRTT makes LDCP's packets of the first round trip not ECN-capable (tc/bpf/first_rtt.bpf.c).
type FirstRTT struct{ object }

// LoadFirstRTT loads it for the flows of congestion control "ldcp".
func LoadFirstRTT(control *loader.Control, options ...Option) (*FirstRTT, error) {
	if control.Name() != "ldcp" || control.FlowTable() == nil { // or another process's of that name
		return nil, fmt.Errorf("first_rtt: congestion control %s has no first round trip: want ldcp", control.Name())
	}
	spec, err := loadFirstrtt()
	if err != nil {
		return nil, err
	}
	obj, err := load("first_rtt", spec, nil, map[string]*ebpf.Map{"flows": control.FlowTable()}, options...)
	if err != nil {
		return nil, err
	}
	return &FirstRTT{obj}, nil
}

// Attach puts it last at the device's egress.
func (f *FirstRTT) Attach(h netns.NsHandle, ifindex int) error {
	return f.attachAll(h, ifindex, f.Places())
}

// NPOptions are the parameters of PCN's notification point (Fig. 8).
type NPOptions struct {
	TNs            uint64  // T, the CNP period
	CongestedShare float64 // 0.95: a flow with more of its packets marked is congested
	RateUnitBps    uint32  // of RecRate, a divisor of 8e9; 0: 1 Mbit/s, Fig. 9
	TJitterNs      uint64  // each window's T is drawn from TNs +- TJitterNs; below TNs
	IdealTime      bool    // take arrivals from the packets, as the lab's ports write them
	DilationShift  uint32
	MaxFlows       uint32 // 0: 65536
}

// NP is PCN's notification point (tc/bpf/np.bpf.c).
type NP struct{ object }

// NPCounts are the CNPs sent, by what they say, and what failed.
type NPCounts struct {
	Decrease, Increase, Hold, NoFlow, NoClone uint64
}

// LoadNP loads the notification point.
func LoadNP(o NPOptions, options ...Option) (*NP, error) {
	if o.TNs == 0 || !(o.CongestedShare >= 0 && o.CongestedShare < 1) {
		return nil, fmt.Errorf("np: T %d ns, congested share %g: want T > 0 and 0 <= share < 1", o.TNs, o.CongestedShare)
	}
	if o.TJitterNs >= o.TNs {
		return nil, fmt.Errorf("np: jitter %d ns of T %d ns: want less than T", o.TJitterNs, o.TNs)
	}
	if o.RateUnitBps != 0 && uint64(8_000_000_000)%uint64(o.RateUnitBps) != 0 {
		return nil, fmt.Errorf("np: RecRate in units of %d bit/s: want a divisor of 8 Gbit/s", o.RateUnitBps)
	}
	spec, err := loadNp()
	if err != nil {
		return nil, err
	}
	if o.MaxFlows != 0 {
		spec.Maps["np_flows"].MaxEntries = o.MaxFlows
	}
	params := struct {
		TNs               uint64
		CongestedPermille uint32
		RateUnitBps       uint32
	}{o.TNs, uint32(o.CongestedShare*1000 + 0.5), o.RateUnitBps}
	obj, err := load("np", spec, map[string]any{
		"np_params":      params,
		"t_jitter_ns":    o.TJitterNs,
		"ideal_time":     o.IdealTime,
		"dilation_shift": o.DilationShift,
	}, nil, options...)
	if err != nil {
		return nil, err
	}
	return &NP{obj}, nil
}

// Attach puts it at the device: last at ingress, first at egress.
func (n *NP) Attach(h netns.NsHandle, ifindex int) error {
	return n.attachAll(h, ifindex, n.Places())
}

// Counts reads the CNPs sent.
func (n *NP) Counts() (NPCounts, error) {
	var c NPCounts
	for i, to := range []*uint64{&c.Decrease, &c.Increase, &c.Hold, &c.NoFlow, &c.NoClone} {
		v, err := n.sum("np_counts", uint32(i))
		if err != nil {
			return NPCounts{}, err
		}
		*to = v
	}
	return c, nil
}

// Forget forgets a flow, if it knows it.
func (n *NP) Forget(k loader.FlowKey) error {
	if err := n.coll.Maps["np_flows"].Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("np: forget flow %s: %w", k, err)
	}
	return nil
}

// DCQCNNPOptions are the parameters of DCQCN's notification point.
type DCQCNNPOptions struct {
	IntervalNs    uint64 // between CNPs for a flow, at least; 0: a CNP for every marked packet
	TCD           bool   // ECT(0) is TCD's mark for undetermined, which CNPs pass on
	IdealTime     bool   // take arrivals from the packets, as the lab's ports write them
	DilationShift uint32
}

// LoadDCQCNNP loads DCQCN's notification point (tc/bpf/np_dcqcn.bpf.c): at most one CNP a flow and interval.
func LoadDCQCNNP(o DCQCNNPOptions, options ...Option) (*NP, error) {
	spec, err := loadNpdcqcn()
	if err != nil {
		return nil, err
	}
	obj, err := load("np_dcqcn", spec, map[string]any{
		"interval_ns":    o.IntervalNs,
		"tcd":            o.TCD,
		"ideal_time":     o.IdealTime,
		"dilation_shift": o.DilationShift,
	}, nil, options...)
	if err != nil {
		return nil, err
	}
	return &NP{obj}, nil
}

// RP is a reaction point: what hears of congestion for a control's flows.
type RP struct{ object }

// RPCounts are the CNPs and CNMs received, by what they say.
type RPCounts struct {
	Decrease, Increase, Hold, Malformed, BadICRC, NoFlow uint64
}

// reactionPoints are the reaction points by their controls' names: those in tc/bpf/rp*.bpf.c.
var reactionPoints = map[string]func() (*ebpf.CollectionSpec, error){
	"pcn": loadRp, "qcn": loadRpqcn,
	"dcqcn": loadRpdcqcn, "dcqcn_tcd": loadRpdcqcn,
	"ibcc": loadRpibcc, "ibcc_tcd": loadRpibcc,
	"timely_tcd": loadRptimely,
}

// LoadRP loads the reaction point of the control's flows.
func LoadRP(control *loader.Control, dilationShift uint32, options ...Option) (*RP, error) {
	specOf, ok := reactionPoints[control.Name()]
	if !ok || control.FlowTable() == nil { // or another process's of that name
		return nil, fmt.Errorf("rp: congestion control %s has no reaction point", control.Name())
	}
	spec, err := specOf()
	if err != nil {
		return nil, err
	}
	vars := map[string]any{"params": control.Params(), "dilation_shift": dilationShift}
	if control.TCD() {
		vars["tcd"] = true
	}
	if unit := control.RateUnitBps(); unit != 0 {
		vars["rate_unit_bps"] = unit
	}
	obj, err := load("rp of "+control.Name(), spec, vars, map[string]*ebpf.Map{"flows": control.FlowTable()}, options...)
	if err != nil {
		return nil, err
	}
	return &RP{obj}, nil
}

// Attach puts it last at the device's ingress.
func (r *RP) Attach(h netns.NsHandle, ifindex int) error {
	return r.attachAll(h, ifindex, r.Places())
}

// Counts reads the CNPs received.
func (r *RP) Counts() (RPCounts, error) {
	var c RPCounts
	for i, to := range []*uint64{&c.Decrease, &c.Increase, &c.Hold, &c.Malformed, &c.BadICRC, &c.NoFlow} {
		v, err := r.sum("rp_counts", uint32(i))
		if err != nil {
			return RPCounts{}, err
		}
		*to = v
	}
	return c, nil
}

// ArriveOptions are those of a lab host's first ingress program.
type ArriveOptions struct {
	SampleNs      uint64    // bin of the sampled series; 0: none
	SinkPort      uint16    // UDP port whose datagrams are counted and dropped
	MaxFlows      uint32    // that are tracked; 0: 4096
	Events        *ebpf.Map // where samples go: the port qdisc's ring buffer; may be nil if there are none
	DilationShift uint32
}

// Arrive counts what arrives at a lab's hosts (tc/bpf/arrive.bpf.c).
type Arrive struct{ object }

// Arrival is what has arrived of one flow. Times are ideal, on the papers' clock.
type Arrival struct {
	Packets, MarkedPackets       uint64
	PayloadBytes                 uint64 // what TCP or UDP carried
	FirstNs, LastNs              uint64 // 0: none yet
	BinNs                        uint64 // start of the sample bin that is not over, and what is in it
	BinBytes                     uint64
	BinPackets, BinMarkedPackets uint32
}

// LoadArrive loads it.
func LoadArrive(o ArriveOptions) (*Arrive, error) {
	shared := map[string]*ebpf.Map{}
	if o.Events != nil {
		shared["events"] = o.Events
	} else if o.SampleNs != 0 {
		return nil, fmt.Errorf("arrive: samples every %d ns, but no ring buffer for them: set Events", o.SampleNs)
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
		BinNs: v.Bin * sampleNs, BinBytes: v.BinBytes, BinPackets: v.BinPackets, BinMarkedPackets: v.BinMarkedPackets,
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
