// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"cmp"
	"fmt"
	"math/bits"
	"os"
	"slices"
)

// Classes is how many traffic classes a port has; the highest goes first.
const Classes = len(npecnPort{}.Classes)

// Limits of bpf/port.h.
const (
	ringMax        = uint32(npecnPortLimitRING_MAX)
	rateChangesMax = int(npecnPortLimitRATE_CHANGES)
	linkEvents     = uint32(npecnPortLimitLINK_EVENTS) // that may wait for one port and class
	lateBuckets    = uint64(npecnLateLimitLATE_BUCKETS)
	lateBucketNs   = uint64(1) << npecnLateLimitLATE_BUCKET_SHIFT
)

const (
	alphaShift      = 8 // fixed point of alpha in bpf/algo/pfc.h
	maxDilation     = 20
	defaultEvents   = 16 << 20
	defaultQuantum  = 1024
	wShift          = 8       // fixed point of QCN's w in bpf/algo/qcn.h
	qShift          = 24      // fixed point of fractions in bpf/algo/fixed.h
	portIDsReserved = 1       // id 0 is the default netdev group, no port
	portsMax        = 1 << 15 // what MARK_PORT_MASK of bpf/include/port.h holds
	slotsMax        = 1 << 31 // of all rings
)

// PFC are the thresholds of one ingress port and class.
type PFC struct {
	XOFFBytes      uint64  // static threshold
	Alpha          float64 // if > 0: XOFF is alpha times the node's free shared buffer
	XONOffsetBytes uint64  // XON lies this far below XOFF
}

// Class is a port's queue for one traffic class.
type Class struct {
	Slots    uint32 // packets it can hold, rounded up to a power of two; 0: no such class
	Lossless bool   // PFC applies
	Marked   bool   // the port's marker applies
	Lossy    bool   // it may lose packets where others are lossless
	// Alpha is what its queue may take of the node's free buffer, up to 64; 0: any.
	Alpha float64
	// Quantum is what its turn is among classes that have one: bytes, or packets if
	// Port.ByPackets. 0: strict priority, before all those.
	Quantum uint32
	Pauses  int // PAUSE and RESUME that Qdisc.TellPauses will tell, at most 64
}

// Marker decides which packets a port marks.
type Marker uint32

// The markers.
const (
	NoMarker  = Marker(npecnMarkerMARKER_NONE)
	NPECN     = Marker(npecnMarkerMARKER_NPECN) // PCN (bpf/algo/npecn.h)
	RED       = Marker(npecnMarkerMARKER_RED)   // DCQCN, DCTCP (bpf/algo/red.h)
	QCN       = Marker(npecnMarkerMARKER_QCN)   // marks nothing: samples for CNMs (bpf/algo/qcn.h)
	FECN      = Marker(npecnMarkerMARKER_FECN)  // InfiniBand (bpf/algo/fecn.h)
	OwnMarker = Marker(npecnMarkerMARKER_OWN)   // that of Options.Object (bpf/include/marker.h)
)

// QCNOptions are the parameters of QCN's congestion point (802.1Qau).
type QCNOptions struct {
	QeqBytes        uint64  // the queue to keep
	W               float64 // weight of the queue's growth, 0 to 128
	SampleBaseBytes uint64  // sent between samples while there is no congestion
	SampleJitter    float64 // of the distance between samples, to both sides: 0.15
}

func (o QCNOptions) check() error {
	const limit = 1 << 32
	if o.QeqBytes == 0 || o.QeqBytes >= limit || o.SampleBaseBytes == 0 ||
		o.SampleBaseBytes >= limit {
		return fmt.Errorf("QCN: Q_eq %d bytes, samples every %d bytes: want 1 to 2^32 - 1",
			o.QeqBytes, o.SampleBaseBytes)
	}
	if !(o.W >= 0 && o.W <= 128 && o.SampleJitter >= 0 && o.SampleJitter <= 1) {
		return fmt.Errorf("QCN: w %g, jitter %g: want 0 to 128, 0 to 1", o.W, o.SampleJitter)
	}
	return nil
}

// CBFC are what an ingress port lends its peer (bpf/algo/cbfc.h), for each lossless class.
type CBFC struct {
	BufferBytes uint64 // rounded down to blocks of 64 bytes; 0: there is no CBFC
	PeriodNs    uint64 // Tc, between updates
}

const (
	cbfcBlock     = 64
	cbfcPeriodMax = 1_000_000_000
)

func (c CBFC) blocks() uint64 { return c.BufferBytes / cbfcBlock }

// FECNOptions are how an InfiniBand switch marks (annex A10).
type FECNOptions struct {
	ThresholdBytes uint64 // longer queues are marked
	PacketBytes    uint32 // packets shorter than that are not
	MarkingRate    uint32 // mean number of packets between marked ones
	Victims        bool   // mark packets that waited for credits too
}

// Detection configures TCD, and detectors that only say what they would mark.
type Detection struct {
	// MaxTonNs is TCD's max(T_on); 0: there is no TCD.
	MaxTonNs uint64
	// TCD marks CE where the marker says that the queue is over, and UE; without it, TCD only says
	// so.
	TCD bool
	// Watch makes NP-ECN, ECN, FECN and TCD say what they would mark, in a Detected of every bin,
	// and reports OFF periods.
	Watch bool
	// OverBytes and ECNBytes are the thresholds of TCD and ECN, if they only say something.
	OverBytes, ECNBytes uint64
}

// REDOptions are RED's parameters: it marks with probability 0 up to KMinBytes, PMax at KMaxBytes,
// and 1 above.
type REDOptions struct {
	KMinBytes, KMaxBytes uint64
	PMax                 float64 // above 0, at most 1
	AllAtKMax            bool    // the probability is 1 at KMaxBytes, as LDCP's draft has it
}

// RateChange is a rate that a port has from a time on, or a failure of its link.
type RateChange struct {
	AtNs    uint64 // on the papers' clock
	RateBps uint64 // 0: the link is down, and loses what is sent and under way
}

// Link is what a link beyond data centres does to packets (bpf/link.h).
type Link struct {
	// LoseBegin and LoseOn are the chances, below 1, that a packet is lost behind one that was not,
	// and behind one that was. Lost ones count as sent, and as DropLink.
	LoseBegin, LoseOn float64
	JitterNs          uint64  // what a packet may take longer; packets keep their order
	Reorder           float64 // the share, below 1, of packets that are late and overtaken
	ReorderNs         uint64  // by so much
	// Trace is the times, in ms, at which it sends 1500 bytes, in place of its rate. It begins
	// again after the last.
	Trace []uint32
}

func (l *Link) disturbs() bool { return l.LoseBegin > 0 || l.JitterNs > 0 || l.Reorder > 0 }

const (
	linkDelayMax = 10_000_000_000 // of the jitter, which bpf/link.h multiplies by 2^24
	traceMax     = 1 << npecnPortLimitTRACE_SHIFT
	nsPerMs      = 1_000_000
)

func (l *Link) check() error {
	for _, share := range []float64{l.LoseBegin, l.LoseOn, l.Reorder} {
		if !(share >= 0 && share < 1) {
			return fmt.Errorf("chance %g of a link: want 0 to less than 1", share)
		}
	}
	if l.JitterNs > linkDelayMax || l.ReorderNs > linkDelayMax {
		return fmt.Errorf("jitter %d ns, late packets %d ns: want at most %d", l.JitterNs,
			l.ReorderNs, uint64(linkDelayMax))
	}
	if n := len(l.Trace); n > 0 && (!slices.IsSorted(l.Trace) || l.Trace[n-1] == 0) {
		return fmt.Errorf("trace of %d times: want them in order, and the last above 0", n)
	}
	return nil
}

// Port configures one port. Its id is its index in Options.Ports.
type Port struct {
	Name       string // for messages
	RateBps    uint64 // 0: no such port
	DelayNs    uint64 // propagation of the link it sends to
	QuantumNs  uint64 // deliveries are rounded up to it, a power of two; 0: Options.QuantumNs
	DecideNs   uint64 // decisions are rounded up to it, a power of two; 0: as QuantumNs
	PFCDelayNs uint64 // from crossing XOFF here until the peer stops
	PFC        PFC
	Peer       uint32 // port id at the link's other end
	Node       uint32 // index in Options.Nodes
	Marker     Marker
	RED        REDOptions // of marker RED
	// WREDBytes is WRED's K: a queue of a marked class that is so long drops packets that are not
	// ECN-capable; 0: never.
	WREDBytes uint64
	// LimitBytes is buf_max: a queue of a marked class grows no longer, and drops; 0: only the
	// node's buffer limits it.
	LimitBytes uint64
	QCN        QCNOptions // of marker QCN
	// CBFC replaces PFC for what comes in by this port.
	CBFC CBFC
	FECN FECNOptions // of marker FECN, and of what Detect.Watch says of FECN
	// OwnMarkerParams are the bytes of struct own_marker_params, of marker OwnMarker.
	OwnMarkerParams []byte
	Detect          Detection
	Seed            uint32 // of their choices
	// RateChanges is how many changes of the rate Qdisc.ChangeRates will tell, at most 64.
	RateChanges int
	Classes     [Classes]Class
	ByPackets   bool // quanta are packets
	Watchdog    Watchdog
	WireSlots   uint32 // packets that can be under way, rounded up to a power of two
	Link        Link
	// Noisy says that the peer is a host, and looks late at what arrives: Options.NoiseDelaysNs.
	Noisy bool
}

// Node is what its ports share.
type Node struct {
	BufferBytes uint64 // shared buffer; 0: unlimited, as hosts have
}

// Options configure all ports of a lab.
type Options struct {
	Ports     []Port // index 0 must be empty: it is the group of devices that have none
	Nodes     []Node
	SampleNs  uint64 // bin of the sampled series; 0: none
	QuantumNs uint64 // timers are rounded up to it, a power of two; 0: 1024
	// LagNs is how long ports wait before they decide, if their delay is long enough for that, so
	// that what arrives late is there; 0: two quanta.
	LagNs         uint64
	EarlyNs       uint64 // a port without delay hands packets over so early; at most the next's lag
	Flows         uint32 // TCP flows that hosts may have when they are watched
	DilationShift uint32 // the kernel's clock runs 2^shift slower than the papers'
	EventsBytes   uint32 // ring buffer, a power of two; 0: 16 MiB
	Partitions    bool   // switches may mark packets as parted (tc.FabricOptions)
	// NoiseDelaysNs are equally likely delays from a first arrival at a host until it looks.
	NoiseDelaysNs [npecnPortLimitNOISE_DELAYS]uint64
	// Object is bpf/npecn.bpf.c compiled with a marker of one's own (bpf/include/marker.h), an
	// ELF file; nil: the built-in object, which has none.
	Object []byte
}

func (o *Options) check() error {
	if len(o.Ports) == 0 || o.Ports[0].RateBps != 0 {
		return fmt.Errorf("port id 0 is reserved: it is the group of devices that have none")
	}
	if len(o.Ports) > portsMax {
		return fmt.Errorf("%d ports: want at most %d", len(o.Ports), portsMax)
	}
	if o.QuantumNs&(o.QuantumNs-1) != 0 {
		return fmt.Errorf("quantum %d ns is no power of two", o.QuantumNs)
	}
	if o.DilationShift > maxDilation {
		return fmt.Errorf("dilation shift %d: want 0 to %d", o.DilationShift, maxDilation)
	}
	if n := o.EventsBytes; n&(n-1) != 0 || int(n) < os.Getpagesize() {
		return fmt.Errorf("ring buffer of %d bytes: want a power of two, "+
			"at least a page (%d bytes)", n, os.Getpagesize())
	}
	var slots, moments uint64
	for id := portIDsReserved; id < len(o.Ports); id++ {
		p := &o.Ports[id]
		if err := o.checkPort(p); err != nil {
			return fmt.Errorf("port %d (%s): %w", id, p.Name, err)
		}
		slots += uint64(slotsFor(p.WireSlots))
		moments += uint64(len(p.Link.Trace))
		for _, k := range p.Classes {
			slots += uint64(slotsFor(k.Slots))
		}
	}
	if slots > slotsMax {
		return fmt.Errorf("%d slots in all rings: want at most %d", slots, slotsMax)
	}
	if moments > traceMax {
		return fmt.Errorf("%d times in the traces of all links: want at most %d", moments, traceMax)
	}
	return o.checkRounding()
}

// checkRounding checks that no port delivers later than the ports behind it wait: its timer is late
// by up to its quantum.
func (o *Options) checkRounding() error {
	leastLagNs := make([]uint64, len(o.Nodes)) // of the ports of each node that wait; 0: none does
	for id := portIDsReserved; id < len(o.Ports); id++ {
		if p := &o.Ports[id]; p.DelayNs != 0 {
			least := &leastLagNs[p.Node]
			*least = min(o.lagNs(p), cmp.Or(*least, o.lagNs(p)))
		}
	}
	for id := portIDsReserved; id < len(o.Ports); id++ {
		p := &o.Ports[id]
		lagNs := leastLagNs[o.Ports[p.Peer].Node]
		if p.DelayNs != 0 && lagNs != 0 && o.quantumNs(p) > lagNs {
			return fmt.Errorf("port %d (%s): quantum %d ns: want at most %d ns, which a port "+
				"behind it waits before it decides", id, p.Name, o.quantumNs(p), lagNs)
		}
	}
	return nil
}

// shares reports whether a class has a share of the free buffer.
func (p *Port) shares() bool {
	return slices.ContainsFunc(p.Classes[:], func(k Class) bool { return k.Alpha > 0 })
}

// weighted returns a bit for each class with a quantum.
func (p *Port) weighted() (classes uint32) {
	for c, k := range p.Classes {
		if k.Quantum > 0 {
			classes |= 1 << c
		}
	}
	return classes
}

func (p *Port) lossless() bool {
	return slices.ContainsFunc(p.Classes[:], func(k Class) bool { return k.Lossless })
}

func (o *Options) checkPort(p *Port) error {
	quantumNs, decideNs := o.quantumNs(p), o.decideNs(p)
	switch {
	case p.RateBps == 0:
		return fmt.Errorf("rate is 0")
	case int(p.Peer) >= len(o.Ports):
		return fmt.Errorf("peer %d: there are %d ports", p.Peer, len(o.Ports))
	case int(p.Node) >= len(o.Nodes):
		return fmt.Errorf("node %d: there are %d nodes", p.Node, len(o.Nodes))
	case quantumNs&(quantumNs-1) != 0:
		return fmt.Errorf("quantum %d ns is no power of two", quantumNs)
	case p.DelayNs != 0 && p.DelayNs <= quantumNs:
		return fmt.Errorf("delay %d ns must exceed the quantum %d ns, which it is the "+
			"lookahead for", p.DelayNs, quantumNs)
	case p.lossless() && p.PFCDelayNs <= quantumNs:
		return fmt.Errorf("PFC delay %d ns must exceed the quantum %d ns, which it is the "+
			"lookahead for", p.PFCDelayNs, quantumNs)
	case decideNs&(decideNs-1) != 0:
		return fmt.Errorf("decisions every %d ns: that is no power of two", decideNs)
	case decideNs > quantumNs && o.lagNs(p)+decideNs > p.DelayNs:
		return fmt.Errorf("decisions after %d ns and up to %d ns more: want at most the delay, "+
			"%d ns, or deliveries are late", o.lagNs(p), decideNs, p.DelayNs)
	case p.DelayNs != 0 && o.lagNs(p) < o.EarlyNs:
		return fmt.Errorf("early hand-over by %d ns: want at most the port's lag, %d ns, which it "+
			"waits before it decides", o.EarlyNs, o.lagNs(p))
	case p.WireSlots < 2 || p.WireSlots > ringMax:
		return fmt.Errorf("wire slots %d: want 2 to %d", p.WireSlots, ringMax)
	case p.Marker > OwnMarker:
		return fmt.Errorf("marker %d: there is none", p.Marker)
	case p.Marker == RED &&
		(p.RED.KMinBytes > p.RED.KMaxBytes || p.RED.KMaxBytes >= 1<<40 ||
			!(p.RED.PMax > 0 && p.RED.PMax <= 1)):
		return fmt.Errorf("RED %d to %d bytes, p_max %g: want k_min <= k_max < 2^40, "+
			"0 < p_max <= 1", p.RED.KMinBytes, p.RED.KMaxBytes, p.RED.PMax)
	case p.RateChanges < 0 || p.RateChanges > rateChangesMax:
		return fmt.Errorf("%d rate changes: want at most %d", p.RateChanges, rateChangesMax)
	case !(p.PFC.Alpha >= 0 && p.PFC.Alpha <= 64):
		return fmt.Errorf("alpha %g: want 0 to 64", p.PFC.Alpha)
	}
	if err := p.checkDrops(); err != nil {
		return err
	}
	if err := p.checkCBFC(&o.Ports[p.Peer]); err != nil {
		return err
	}
	if err := p.checkDetection(); err != nil {
		return err
	}
	if p.Marker == QCN {
		if err := p.QCN.check(); err != nil {
			return err
		}
	}
	if err := p.Link.check(); err != nil {
		return err
	}
	if err := p.Watchdog.check(); err != nil {
		return err
	}
	for c, k := range p.Classes {
		if k.Slots > ringMax || k.Slots == 1 {
			return fmt.Errorf("class %d has %d slots: want 0, or 2 to %d", c, k.Slots, ringMax)
		}
		if !(k.Alpha >= 0 && k.Alpha <= 64) || k.Lossless && k.Lossy {
			return fmt.Errorf("class %d with alpha %g, lossless %t, lossy %t: want 0 to 64, and "+
				"not both", c, k.Alpha, k.Lossless, k.Lossy)
		}
		if k.Pauses < 0 || k.Pauses > int(linkEvents) {
			return fmt.Errorf("class %d has %d PAUSE and RESUME: want at most %d", c, k.Pauses,
				linkEvents)
		}
	}
	return nil
}

// fullFrame is the least that a queue's limit must have room for: a full frame of Ethernet.
const fullFrame = 1514

// checkDrops checks what makes the port drop packets.
func (p *Port) checkDrops() error {
	if p.WREDBytes == 0 && p.LimitBytes == 0 {
		return nil
	}
	switch {
	case !slices.ContainsFunc(p.Classes[:], func(k Class) bool { return k.Slots > 0 && k.Marked }):
		return fmt.Errorf("WRED at %d bytes, limit %d bytes, but no class is marked: "+
			"they are for those that are", p.WREDBytes, p.LimitBytes)
	case p.Marker == NPECN && p.WREDBytes > 0:
		return fmt.Errorf("WRED at %d bytes: NP-ECN marks packets that are not ECN-capable too: "+
			"choose another marker", p.WREDBytes)
	case p.LimitBytes != 0 && p.LimitBytes < fullFrame:
		return fmt.Errorf("limit %d bytes: want at least a frame, %d bytes", p.LimitBytes,
			fullFrame)
	}
	return nil
}

// checkCBFC checks that a buffer has room for a frame, and that it is lent to classes that the peer
// has too: the others would get no credits back.
func (p *Port) checkCBFC(peer *Port) error {
	for c := range p.Classes {
		if p.CBFC.BufferBytes > 0 && peer.Classes[c].Lossless != p.Classes[c].Lossless {
			return fmt.Errorf("CBFC: class %d is lossless at one end of the link only: "+
				"want it so at both", c)
		}
	}
	switch c := p.CBFC; {
	case c == CBFC{}:
		return nil
	case c.BufferBytes < fullFrame || c.BufferBytes >= 1<<40:
		return fmt.Errorf("CBFC buffer %d bytes: want at least a frame, %d bytes, "+
			"and less than 2^40", c.BufferBytes, fullFrame)
	case c.PeriodNs == 0 || c.PeriodNs > cbfcPeriodMax:
		return fmt.Errorf("CBFC period %d ns: want 1 to %d", c.PeriodNs, uint64(cbfcPeriodMax))
	}
	return nil
}

func (p *Port) checkDetection() error {
	d := p.Detect
	switch {
	case d.TCD && d.MaxTonNs == 0:
		return fmt.Errorf("TCD without max(T_on): want more than 0")
	case d.TCD && p.Marker != RED && p.Marker != FECN:
		return fmt.Errorf("TCD with marker %d: want RED or FECN, which say whether a queue is over",
			p.Marker)
	case d.MaxTonNs > cbfcPeriodMax:
		return fmt.Errorf("max(T_on) %d ns: want at most %d", d.MaxTonNs, uint64(cbfcPeriodMax))
	case (d.MaxTonNs > 0 || d.Watch) && (p.WREDBytes > 0 || p.LimitBytes > 0 || p.shares()):
		return fmt.Errorf("detectors with WRED or a limit: they are for queues that drop nothing")
	}
	return nil
}

// quantumNs is what the port's timers are rounded up to. A host's are exact: TCP small queues wait
// for its packets to leave.
func (o *Options) quantumNs(p *Port) uint64 {
	if p.DelayNs == 0 {
		return 1
	}
	return cmp.Or(p.QuantumNs, o.QuantumNs)
}

// decideNs is what the port's timers for decisions are rounded up to.
func (o *Options) decideNs(p *Port) uint64 {
	if p.DelayNs == 0 {
		return 1
	}
	return cmp.Or(p.DecideNs, o.quantumNs(p))
}

// lagNs is how long a port waits before it decides, so that what arrives late is there. The rest of
// its delay is for its own timer, and for the work. A host has no lookahead, and decides at once.
func (o *Options) lagNs(p *Port) uint64 {
	return min(cmp.Or(o.LagNs, 2*o.QuantumNs), p.DelayNs*4/7)
}

// uses returns what any of the ports uses.
func (o *Options) uses() npecnUse {
	var uses npecnUse
	if o.Partitions {
		uses = npecnUseUSE_PARTITIONS
	}
	for id := portIDsReserved; id < len(o.Ports); id++ {
		p := &o.Ports[id]
		for _, u := range []struct {
			used bool
			use  npecnUse
		}{
			{p.CBFC.BufferBytes > 0, npecnUseUSE_CBFC},
			{p.WREDBytes > 0 || p.LimitBytes > 0 || p.Watchdog.PollNs > 0 || p.shares(),
				npecnUseUSE_DROPS},
			{p.weighted() != 0, npecnUseUSE_WEIGHTS},
			{p.Watchdog.PollNs > 0, npecnUseUSE_WATCHDOG},
			{p.Detect.Watch || p.Detect.MaxTonNs > 0, npecnUseUSE_DETECTORS},
			{p.RateChanges > 0, npecnUseUSE_RATE_CHANGES},
			{p.Marker == RED, npecnUseUSE_RED},
			{p.Marker == QCN, npecnUseUSE_QCN},
			{p.Marker == FECN, npecnUseUSE_FECN},
			{p.Noisy, npecnUseUSE_NOISE},
			{p.Link.disturbs(), npecnUseUSE_LINK},
			{p.Link.Reorder > 0, npecnUseUSE_REORDER},
			{len(p.Link.Trace) > 0, npecnUseUSE_TRACE},
		} {
			if u.used {
				uses |= u.use
			}
		}
	}
	return uses
}

// slotsFor rounds up to the ring's power of two.
func slotsFor(n uint32) uint32 {
	if n == 0 {
		return 0
	}
	return 1 << bits.Len32(n-1)
}

// layout gives every ring its slots and returns the ports as the kernel wants them, and how many
// slots there are.
func (o *Options) layout() ([]npecnPort, uint32) {
	ports := make([]npecnPort, len(o.Ports))
	var next, moments uint32
	take := func(n uint32) (base, mask uint32) {
		n = slotsFor(n)
		if n == 0 {
			return 0, 0
		}
		base = next
		next += n
		return base, n - 1
	}
	for id := portIDsReserved; id < len(o.Ports); id++ {
		in, out := &o.Ports[id], &ports[id]
		out.Config = o.portConfig(uint32(id), in)
		out.Config.Link.TraceFirst = moments
		moments += out.Config.Link.TraceEntries
		out.State = in.initialState()
		out.State.Wire.Base, out.State.Wire.Mask = take(in.WireSlots)
		for c := range in.Classes {
			k := &out.Classes[c]
			k.Queue.Base, k.Queue.Mask = take(in.Classes[c].Slots)
			k.Config.Lossless = flag(in.Classes[c].Lossless)
			k.Config.Marked = flag(in.Classes[c].Marked)
			k.Tx.Credits.Fccl = out.Config.Credits
			k.Tx.EventTail = uint32(in.Classes[c].Pauses)
			k.Config.Lossy = flag(in.Classes[c].Lossy)
			k.Config.Alpha = fixed(in.Classes[c].Alpha, uint(npecnPortLimitALPHA_SHIFT))
			k.Config.Quantum = in.Classes[c].Quantum
			k.Qcn.CreditBytes, k.Qcn.Random = in.congestionPoint(c)
		}
	}
	return ports, next
}

// portConfig returns the port's configuration as the kernel wants it.
func (o *Options) portConfig(id uint32, p *Port) npecnPortConfig {
	c := npecnPortConfig{
		RateBps: p.RateBps, DelayNs: p.DelayNs,
		QuantumNs: o.quantumNs(p), DecideNs: o.decideNs(p), LagNs: o.lagNs(p),
		PfcDelayNs: p.PFCDelayNs,
		WredBytes:  p.WREDBytes, LimitBytes: p.LimitBytes, Credits: o.Ports[p.Peer].CBFC.blocks(),
		Id: id, Peer: p.Peer, Node: p.Node, RateChanges: uint32(p.RateChanges),
		Marker: uint32(p.Marker), Noisy: flag(p.Noisy),
		Weighted: p.weighted(), ByPackets: flag(p.ByPackets),
	}
	c.Red.KminBytes, c.Red.KmaxBytes = p.RED.KMinBytes, p.RED.KMaxBytes
	c.Red.Pmax, c.Red.AllAtKmax = fixed(p.RED.PMax, qShift), flag(p.RED.AllAtKMax)
	c.Qcn.QeqBytes, c.Qcn.SampleBaseBytes = p.QCN.QeqBytes, p.QCN.SampleBaseBytes
	c.Qcn.W, c.Qcn.Jitter = fixed(p.QCN.W, wShift), fixed(p.QCN.SampleJitter, qShift)
	c.Fecn.ThresholdBytes, c.Fecn.PacketBytes = p.FECN.ThresholdBytes, p.FECN.PacketBytes
	c.Fecn.MarkingRate, c.Fecn.Victims = p.FECN.MarkingRate, flag(p.FECN.Victims)
	c.Pfc.XoffBytes, c.Pfc.XonOffsetBytes = p.PFC.XOFFBytes, p.PFC.XONOffsetBytes
	c.Pfc.Alpha = fixed(p.PFC.Alpha, alphaShift)
	c.Cbfc.BufferBlocks, c.Cbfc.PeriodNs = p.CBFC.blocks(), p.CBFC.PeriodNs
	c.Watchdog.PollNs, c.Watchdog.FirstNs = p.Watchdog.PollNs, p.Watchdog.FirstNs
	c.Watchdog.DetectPolls = p.Watchdog.DetectPolls
	c.Watchdog.RestorePolls = p.Watchdog.RestorePolls
	c.Watchdog.Action = npecnPfcWatchdogAction(p.Watchdog.Action)
	c.Link = p.Link.config()
	c.Detect.MaxTonNs = p.Detect.MaxTonNs
	c.Detect.OverBytes, c.Detect.EcnBytes = p.Detect.OverBytes, p.Detect.ECNBytes
	c.Detect.Tcd, c.Detect.Watch = flag(p.Detect.TCD), flag(p.Detect.Watch)
	return c
}

// config returns the link's configuration as the kernel wants it, but for where its trace begins.
func (l *Link) config() npecnLinkParams {
	const chance = 32 // bits
	c := npecnLinkParams{
		LoseBegin: fixed(l.LoseBegin, chance), LoseOn: fixed(l.LoseOn, chance),
		Reorder: fixed(l.Reorder, chance), ReorderNs: l.ReorderNs, JitterNs: l.JitterNs,
		On: flag(l.disturbs()), TraceEntries: uint32(len(l.Trace)),
	}
	if n := len(l.Trace); n > 0 {
		c.TraceNs = uint64(l.Trace[n-1]) * nsPerMs
	}
	return c
}

// noiseSeed makes the seed of a host's delays another than that of its port's marks, and linkSeed
// that of its link's choices: they are odd, as Knuth's multiplicative hash has it.
const (
	noiseSeed = 2654435761
	linkSeed  = 2246822519
)

// initialState returns what a port's state is before its first packet.
func (p *Port) initialState() npecnPortState {
	return npecnPortState{RateBps: p.RateBps, Random: max(p.Seed, 1),
		NoiseRandom: max(p.Seed*noiseSeed, 1), LinkRandom: max(p.Seed*linkSeed, 1)}
}

// congestionPoint returns the state of QCN's congestion point before the first packet of a class:
// each class has one, and draws its own distances between samples.
func (p *Port) congestionPoint(class int) (creditBytes int64, random uint32) {
	return int64(p.QCN.SampleBaseBytes), max(p.Seed^uint32(class)<<24, 1)
}

// fixed returns x in fixed point, rounded.
func fixed(x float64, shift uint) uint32 { return uint32(x*float64(uint64(1)<<shift) + 0.5) }

func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}
