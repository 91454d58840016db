// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/workload"
)

// Run is one run of one scheme.
type Run struct {
	Manifest     Manifest
	Experiment   []byte // the experiment file as it was read
	Flows        []Flow
	Ports        []Port
	Series       []Sample
	PFC          []PFCEvent
	PauseRepeats []PauseRepeats  // only bins with PAUSE frames
	Watchdog     []WatchdogEvent // storms that PFC's watchdog found
	Qdiscs       []QdiscSample   // of qdiscs of Linux, in the order of time
	States       []State         // only if switches have detectors
	Completions  []Completion    // of TCP flows with a size
	Trace        []workload.Flow // of a trace or a workload
	Programs     []Program
	Captures     map[string][]byte // as pcapng, by host
	Counters     map[string][]byte // of nftables' rules and Linux's qdiscs, by file

	index *seriesIndex // of Series, see [Run.Index]; nil: none yet
}

// Manifest describes a run: its settings, the machine, and whether it is valid.
type Manifest struct {
	Tool             string `json:"tool"`              // name and version of pcn
	Experiment       string `json:"experiment"`        // name
	Case             string `json:"case,omitempty"`    // empty if the experiment has no cases
	ExperimentSHA256 string `json:"experiment_sha256"` // of the experiment file, in hexadecimal
	Scheme           string `json:"scheme"`            // such as pcn
	Engine           string `json:"engine,omitempty"`  // sim; empty: the kernel
	Seed             uint64 `json:"seed"`              // from which all random choices are drawn
	// binary logarithm of how many times slower than the paper's time the run was
	DilationShift uint `json:"dilation_shift"`
	// DilationsTried are the choices, by `dilation: auto`, that turned out to be too low.
	DilationsTried []uint `json:"dilations_tried,omitempty"`

	DurationNs int64 `json:"duration_ns"` // after t = 0
	WarmupNs   int64 `json:"warmup_ns"`   // before t = 0
	SampleNs   int64 `json:"sample_ns"`   // length of a bin of the series
	BaseRTTNs  int64 `json:"base_rtt_ns"` // longest round trip of a flow through empty queues

	// What ran it: hashes are in hexadecimal, and empty if there is no such thing. A run has a
	// guest only if it had a microVM.
	GuestSHA256   string  `json:"guest_sha256"`      // of the microVM's program
	SchemeSHA256  string  `json:"scheme_sha256"`     // of the scheme's compiled object
	Kernel        string  `json:"kernel"`            // release
	KernelSHA256  string  `json:"kernel_sha256"`     // of the microVM's kernel image
	QEMU          string  `json:"qemu"`              // version
	Deterministic bool    `json:"deterministic"`     // the same input gives the same bytes
	Machine       Machine `json:"machine,omitempty"` // "": none, or pcn was older than the field

	GuestCPUBusy float64 `json:"guest_cpu_busy"` // share of time, 0 to 1
	// how late ports sent packets, against the ideal time: median
	LatenessP50Ns int64 `json:"lateness_p50_ns"`
	LatenessP99Ns int64 `json:"lateness_p99_ns"` // the same, 99th percentile
	LatenessMaxNs int64 `json:"lateness_max_ns"` // the same, at most
	// HostLateness is how late hosts were, which run by the kernel's clock.
	HostLateness HostLateness `json:"host_lateness"`
	// CausalityViolations counts packets that arrived after the ideal time of their departure.
	CausalityViolations uint64 `json:"causality_violations"`

	// LostPackets counts packets lost outside the ports, by place: in switches, the kernel's
	// backlog, devices and sockets, and TCP's retransmissions. What ports drop is in ports.csv.
	LostPackets map[string]uint64 `json:"lost_packets"`

	Deadlock *Deadlock `json:"deadlock,omitempty"` // nil if there was none

	Verdict Verdict  `json:"verdict"` // valid, or invalid: its numbers are not to be used
	Reasons []string `json:"reasons"` // why the run is invalid; empty if it is valid
	// Warnings say what may not be meant in a run that can be valid.
	Warnings []string `json:"warnings,omitempty"`

	Wall Wall `json:"wall"` // what the run cost, by the clock of the machine
}

// HostLateness is how long after their causes hosts sent packets, in the papers' time.
type HostLateness struct {
	// Starts has the first data of each TCP flow, after the flow's start.
	Starts Lateness `json:"starts"`
	// ACKs are late by the time since the ideal arrival of what they acknowledge.
	ACKs Lateness `json:"acks"`
	// Data is late by the time since it could have left: by pacing, window and link.
	Data Lateness `json:"data"`
}

// Lateness is a distribution, of which percentiles may be up to 64 ns too high.
type Lateness struct {
	Count uint64 `json:"count"`
	P50Ns int64  `json:"p50_ns"`
	P99Ns int64  `json:"p99_ns"`
	MaxNs int64  `json:"max_ns"`
}

// NewLateness returns the distribution of these values, which it sorts.
func NewLateness(ns []int64) Lateness {
	if len(ns) == 0 {
		return Lateness{}
	}
	slices.Sort(ns)
	rank := func(q float64) int64 { return ns[int(math.Ceil(q*float64(len(ns))))-1] }
	return Lateness{uint64(len(ns)), rank(0.5), rank(0.99), ns[len(ns)-1]}
}

// LabelOf returns CASE/SCHEME, or SCHEME if the experiment has no cases.
func LabelOf(caseName, scheme string) string {
	if caseName == "" {
		return scheme
	}
	return caseName + "/" + scheme
}

// Label returns the run's name among the runs of its experiment, as [LabelOf] does.
func (m Manifest) Label() string {
	return LabelOf(m.Case, m.Scheme)
}

// Deadlock is a cycle of paused ports. Each waits for the next, so none can ever send again.
type Deadlock struct {
	SinceNs int64 `json:"since_ns"` // when the last of them was paused
	Class   uint8 `json:"class"`
	// Ports has the cycle: packets queued at the next port keep each of them paused, and packets at
	// the first port keep the last one paused.
	Ports  []string `json:"ports"`
	Behind int      `json:"behind"` // number of further ports that wait for these
	// BrokenNs is when it was first seen to be over, because PFC's watchdog broke it. 0: never
	BrokenNs int64 `json:"broken_ns,omitempty"`
}

// NewDeadlock returns the record of queues that can never send again. Its class is that of the
// queues, and since when it is on their clock. nameOf returns the name of a port.
func NewDeadlock(stuck network.PausedQueues, nameOf func(port uint32) string) *Deadlock {
	cycle := stuck.WaitGraph().Cycle()
	d := &Deadlock{Behind: len(stuck) - len(cycle)}
	for _, q := range cycle {
		d.SinceNs = max(d.SinceNs, int64(stuck[q].SinceNs))
		d.Ports = append(d.Ports, nameOf(q.Port))
		d.Class = q.Class
	}
	return d
}

// String describes the deadlock in one line.
func (d *Deadlock) String() string {
	var behind string
	if d.Behind > 0 {
		behind = fmt.Sprintf(", and %d more ports behind them", d.Behind)
	}
	when := "since " + experiment.Duration(d.SinceNs).String()
	if d.BrokenNs != 0 {
		when = fmt.Sprintf("from %s to %s, when PFC's watchdog had broken it",
			experiment.Duration(d.SinceNs), experiment.Duration(d.BrokenNs))
	}
	return fmt.Sprintf("%s, class %d: %s wait for each other%s", when, d.Class,
		strings.Join(d.Ports, ", "), behind)
}

// Wall is the cost of a run in the machine's time. It differs from run to run.
type Wall struct {
	StartedAt time.Time `json:"started_at"`
	TotalS    float64   `json:"total_s"`
	BootS     float64   `json:"boot_s"`
	Host      string    `json:"host"`
}

// Machine is what ran the kernel of a microVM.
type Machine string

// User Mode Linux has exact virtual time, in which CPUs take no time. In QEMU instructions do, or
// the time is the host's.
const (
	UML  Machine = "uml"
	QEMU Machine = "qemu"
)

// Verdict says whether the results of a run are valid.
type Verdict string

// A run is valid if it was on time and lost no packets that the experiment did not intend to lose.
const (
	Valid   Verdict = "valid"
	Invalid Verdict = "invalid"
)

// Flow has the counters of one flow.
type Flow struct {
	Name     string `csv:"flow"`
	Group    string `csv:"group"`    // name of the experiment's entry under flows or bursts
	Scheme   string `csv:"scheme"`   // which controls the flow
	Src      string `csv:"src"`      // host
	Dst      string `csv:"dst"`      // host
	SrcAddr  string `csv:"src_addr"` // IP address of the sender
	SrcPort  uint16 `csv:"src_port"` // port of the sender
	DstAddr  string `csv:"dst_addr"` // IP address of the receiver
	DstPort  uint16 `csv:"dst_port"` // port of the receiver
	Proto    Proto  `csv:"proto"`    // tcp, or udp for bursts
	Priority uint8  `csv:"priority"` // 0 is the highest
	StartNs  int64  `csv:"start_ns"` // when it may send its first packet
	// when the last packet was received; nil if it was not
	EndNs           *int64 `csv:"end_ns"`
	CompletionNs    int64  `csv:"completion_ns"`   // as fct_ns of completions.csv; 0: not complete
	SentBytes       uint64 `csv:"sent_bytes"`      // frames that the sender sent
	ReceivedBytes   uint64 `csv:"received_bytes"`  // frames that the receiver received
	Packets         uint64 `csv:"packets"`         // received
	MarkedPackets   uint64 `csv:"marked_packets"`  // received with CE
	EchoedPackets   uint64 `csv:"echoed_packets"`  // of the marked ones, echoed to the sender
	CNPDecrease     uint64 `csv:"cnp_decrease"`    // notifications that told it to slow down
	CNPIncrease     uint64 `csv:"cnp_increase"`    // notifications that let it speed up
	SendRateBps     uint64 `csv:"send_rate_bps"`   // of the control, at the end
	RecRateBps      uint64 `csv:"rec_rate_bps"`    // in the last CNP
	CwndPackets     uint64 `csv:"cwnd_packets"`    // at the end; 0 for rate-based controls
	SRTTNs          int64  `csv:"srtt_ns"`         // round trip that the sender measures, smoothed
	Retransmissions uint64 `csv:"retransmissions"` // packets that TCP sent again
	Timeouts        uint64 `csv:"timeouts"`        // of TCP's retransmission timer
	ECN             bool   `csv:"ecn"`             // negotiated

	// Stats are the statistics of the control's algorithm at the end: a column each behind those
	// above.
	Stats []Stat `csv:"-"`
}

// Stat is a statistic that a control's algorithm keeps of a flow.
type Stat struct {
	Key   string
	Value float64
}

// Completion has the completion time of a flow with a size.
type Completion struct {
	Flow      string   `csv:"flow"`       // name
	Group     string   `csv:"group"`      // name of the entry under flows or bursts
	Src       string   `csv:"src"`        // host
	Dst       string   `csv:"dst"`        // host
	Priority  int      `csv:"priority"`   // 0 is the highest
	SizeBytes uint64   `csv:"size_bytes"` // data of the flow
	StartNs   int64    `csv:"start_ns"`   // when it may send its first packet
	FCTNs     *int64   `csv:"fct_ns"`     // until all data was acknowledged; nil if it was not
	IdealNs   int64    `csv:"ideal_ns"`   // the same for a flow at line rate in an empty network
	Slowdown  *float64 `csv:"slowdown"`   // fct_ns / ideal_ns, to 4 decimals
}

// NewCompletion returns c with its slowdown computed.
func NewCompletion(c Completion) Completion {
	if c.FCTNs != nil && c.IdealNs > 0 {
		c.Slowdown = new(math.Round(float64(*c.FCTNs)/float64(c.IdealNs)*1e4) / 1e4)
	}
	return c
}

// Proto is a transport. Bursts use UDP, controlled flows use TCP.
type Proto string

// The transports of the lab.
const (
	TCP Proto = "tcp"
	UDP Proto = "udp"
)

// Port has the counters of one egress port. PAUSE frames belong to the port that sends on their
// link: frames that S0->S1 received from S1 stop it, and frames that it sent stop S1->S0.
type Port struct {
	Name                  string `csv:"port"`                    // such as S0->S1
	Node                  string `csv:"node"`                    // which the port belongs to
	Peer                  string `csv:"peer"`                    // at the other end of its link
	Tier                  string `csv:"tier"`                    // of the node: host, leaf, spine
	RateBps               uint64 `csv:"rate_bps"`                // of the link
	DelayNs               int64  `csv:"delay_ns"`                // of the link, one way
	EnqueuedPackets       uint64 `csv:"enqueued_packets"`        // accepted into the queue
	EnqueuedBytes         uint64 `csv:"enqueued_bytes"`          // frames of those
	SentPackets           uint64 `csv:"sent_packets"`            // of all classes
	SentBytes             uint64 `csv:"sent_bytes"`              // frames of those
	QueuedPackets         uint64 `csv:"queued_packets"`          // at the end
	MarkedPackets         uint64 `csv:"marked_packets"`          // which left with a new mark
	DroppedBufferPackets  uint64 `csv:"dropped_buffer_packets"`  // refused: shared buffer full
	DroppedRingPackets    uint64 `csv:"dropped_ring_packets"`    // refused: ring full
	DroppedNoClassPackets uint64 `csv:"dropped_noclass_packets"` // refused: no class
	DroppedResetPackets   uint64 `csv:"dropped_reset_packets"`   // queued when the qdisc was reset
	// not ECN-capable, above WRED's threshold
	DroppedWREDPackets uint64 `csv:"dropped_wred_packets"`
	DroppedTailPackets uint64 `csv:"dropped_tail_packets"` // the port's queue was full
	PauseSent          uint64 `csv:"pause_sent"`           // PAUSE frames that it sent
	ResumeSent         uint64 `csv:"resume_sent"`          // RESUME frames that it sent
	PauseReceived      uint64 `csv:"pause_received"`       // PAUSE frames that stopped it
	ResumeReceived     uint64 `csv:"resume_received"`      // RESUME frames that let it go on
	PausedNs           int64  `csv:"paused_ns"`            // how long it was stopped
	QueueMaxBytes      uint64 `csv:"queue_max_bytes"`      // its longest queue
	// how late it sent packets, against the ideal time: median
	LatenessP50Ns int64 `csv:"lateness_p50_ns"`
	LatenessP99Ns int64 `csv:"lateness_p99_ns"` // the same, 99th percentile
	LatenessMaxNs int64 `csv:"lateness_max_ns"` // the same, at most
}

// DroppedPackets returns the number of packets that the port dropped for any reason.
func (p Port) DroppedPackets() uint64 {
	return p.RefusedPackets() + p.DroppedQueuedPackets()
}

// DroppedQueuedPackets returns the number of packets that the port accepted and then dropped: by
// WRED, because of a full queue, or at a reset.
func (p Port) DroppedQueuedPackets() uint64 {
	return p.DroppedWREDPackets + p.DroppedTailPackets + p.DroppedResetPackets
}

// RefusedPackets returns the number of packets that the port did not accept: because of a full
// buffer or ring, or because they have no class.
func (p Port) RefusedPackets() uint64 {
	return p.DroppedBufferPackets + p.DroppedRingPackets + p.DroppedNoClassPackets
}

// Places of lost packets in [Manifest.LostPackets] that make no run invalid.
const (
	LostOnLinks    = "links"
	LostByWatchdog = "watchdog" // they came in by a port whose watchdog drops
)

// Kind is the kind of object that a row of the series describes.
type Kind string

// The kinds of objects in the series.
const (
	KindPort   Kind = "port"
	KindFlow   Kind = "flow"   // the receiver of a flow
	KindSender Kind = "sender" // the TCP sender of a flow, at the end of the bin
)

// Sample describes one flow, sender or port in one bin of time. Values that its kind lacks are 0.
type Sample struct {
	TimeNs int64 // start of the bin
	Kind   Kind
	Name   string // of the port or the flow
	// RateBps is the rate at which the port sent or the receiver of the flow received in the bin,
	// in Ethernet frames without FCS. For a sender it is the pacing rate.
	RateBps uint64
	// QueueBytes is the port's queue at the start of the bin.
	QueueBytes uint64
	// QueueMaxBytes is the port's longest queue in the bin.
	QueueMaxBytes uint64
	// MarkedPackets counts packets that the port marked, or that the flow received marked, in the
	// bin.
	MarkedPackets uint64
	// CwndPackets is the sender's congestion window; 0 for rate-based controls.
	CwndPackets uint64
	// SRTTNs is the smoothed round trip that the sender measures.
	SRTTNs int64
	// CNPs counts the CNPs or CNMs that the sender has received since its start.
	CNPs uint64
}

// PFCEvent is one PAUSE or RESUME frame.
type PFCEvent struct {
	SentNs   int64   `csv:"sent_ns"`   // when it was sent
	EffectNs int64   `csv:"effect_ns"` // when it stops or restarts the port that sends to the node
	From     string  `csv:"from"`      // the node that sent it
	To       string  `csv:"to"`        // the node it stops; parallel links have a suffix, as S1.0
	Class    uint8   `csv:"class"`     // of traffic, which it is for
	Kind     PFCKind `csv:"kind"`      // pause or resume
}

// Moment is what a run recorded in the bin that has just ended, for those who watch it.
type Moment struct {
	TimeNs  int64 // start of the bin
	Samples []Sample
	PFC     []PFCEvent // sent in the bin
}

// PauseRepeats counts the PAUSE frames of a class on a link in a bin of time, as if switches
// repeated them like those of ns3-rdma: with each packet that finds the buffer above XOFF, and
// every 2.5 us in between.
type PauseRepeats struct {
	TimeNs int64  `csv:"time_ns"` // start of the bin
	From   string `csv:"from"`    // the node that sent them
	To     string `csv:"to"`      // the node that they stop
	Class  uint8  `csv:"class"`   // of traffic, which they are for
	Frames uint64 `csv:"frames"`  // in the bin
}

// WatchdogEvent is a storm of PAUSE frames that PFC's watchdog found at a queue.
type WatchdogEvent struct {
	DetectedNs int64  `csv:"detected_ns"` // when it acted
	RestoredNs int64  `csv:"restored_ns"` // when the queue obeyed PFC again; 0: not in the run
	Port       string `csv:"port"`        // which was paused
	Class      uint8  `csv:"class"`       // of traffic
	Action     string `csv:"action"`      // drop, forward or alert
	// packets of its queue, and of those that came for it
	DroppedPackets uint64 `csv:"dropped_packets"`
	RefusedPackets uint64 `csv:"refused_packets"` // packets that came in by it
}

// QdiscSample is what a qdisc of Linux before a port holds at the end of a bin of the series, and
// has done since the bin before.
type QdiscSample struct {
	TimeNs         int64  `csv:"time_ns"`         // the end of the bin
	Port           string `csv:"port"`            // such as S0->S1
	BacklogBytes   uint64 `csv:"backlog_bytes"`   // of packets that wait in the qdisc then
	BacklogPackets uint64 `csv:"backlog_packets"` // which are so many
	DroppedPackets uint64 `csv:"dropped_packets"` // since the row before
	// marked since the row before, by cake, codel, fq, fq_codel, fq_pie, pie or red
	MarkedPackets uint64 `csv:"marked_packets"`
}

// PFCKind is a kind of PFC frame.
type PFCKind string

// The kinds of PFC frames.
const (
	Pause  PFCKind = "pause"
	Resume PFCKind = "resume"
)
