// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/workload"
)

// Run is one run of one scheme.
type Run struct {
	Manifest   Manifest
	Experiment []byte // the experiment file, as it was read
	Flows      []Flow
	Ports      []Port
	Series     []Sample
	PFC        []PFCEvent
	// PauseRepeats has the bins in which PAUSE frames would be sent; none without PAUSE.
	PauseRepeats []PauseRepeats
	States       []State // of ports, if switches have detectors
	// Completions has the TCP flows with a size; none if there is none.
	Completions []Completion
	// Trace has the flows of a trace or a workload; none if there is none.
	Trace []workload.Flow
}

// Manifest says what ran, and whether it can be believed.
type Manifest struct {
	Tool             string `json:"tool"`              // name and version of the program
	Experiment       string `json:"experiment"`        // name of the experiment
	Case             string `json:"case,omitempty"`    // of the experiment; empty if it has none
	ExperimentSHA256 string `json:"experiment_sha256"` // of the experiment file, in hexadecimal
	Scheme           string `json:"scheme"`
	Seed             uint64 `json:"seed"`
	DilationShift    uint   `json:"dilation_shift"` // binary logarithm of how much slower than the paper's time it ran
	DurationNs       int64  `json:"duration_ns"`    // after t = 0
	WarmupNs         int64  `json:"warmup_ns"`      // before t = 0
	SampleNs         int64  `json:"sample_ns"`      // length of a bin of the series
	BaseRTTNs        int64  `json:"base_rtt_ns"`    // longest round trip of a flow through empty queues

	// What ran it: hashes are in hexadecimal, and empty if there is no such thing. A run has a
	// guest and QEMU only if it had a microVM.
	GuestSHA256   string `json:"guest_sha256"`  // of the microVM's program
	SchemeSHA256  string `json:"scheme_sha256"` // of the scheme's compiled object
	Kernel        string `json:"kernel"`        // release
	KernelSHA256  string `json:"kernel_sha256"` // of the microVM's kernel image
	QEMU          string `json:"qemu"`          // version
	Deterministic bool   `json:"deterministic"` // the same input gives the same bytes

	GuestCPUBusy        float64 `json:"guest_cpu_busy"` // share of time, 0 to 1
	LatenessP50Ns       int64   `json:"lateness_p50_ns"`
	LatenessP99Ns       int64   `json:"lateness_p99_ns"`
	LatenessMaxNs       int64   `json:"lateness_max_ns"`
	CausalityViolations uint64  `json:"causality_violations"` // packets that arrived after the ideal time of their departure

	// LostPackets counts packets lost outside the ports, by place: in switches, the kernel's backlog, devices and
	// sockets, and what TCP sent again. A port's own are in [Port.DroppedPackets].
	LostPackets map[string]uint64 `json:"lost_packets"`

	Deadlock *Deadlock `json:"deadlock,omitempty"` // nil: there was none

	Verdict Verdict  `json:"verdict"`
	Reasons []string `json:"reasons"` // why the run is invalid; none if it is valid

	Wall Wall `json:"wall"`
}

// LabelOf names a run of an experiment: CASE/SCHEME, or SCHEME if the experiment has no cases.
func LabelOf(caseName, scheme string) string {
	if caseName == "" {
		return scheme
	}
	return caseName + "/" + scheme
}

// Label names the run among those of its experiment, as [LabelOf] does.
func (m Manifest) Label() string {
	return LabelOf(m.Case, m.Scheme)
}

// Deadlock is a cycle of ports each of which waits for the next, so that none will ever send again.
type Deadlock struct {
	SinceNs int64    `json:"since_ns"` // when the last of them was paused
	Class   uint8    `json:"class"`
	Ports   []string `json:"ports"`  // each is paused because of what stands in the next, and the last because of the first
	Behind  int      `json:"behind"` // how many more ports wait for these for good
}

// String returns what there is to say of it.
func (d *Deadlock) String() string {
	var behind string
	if d.Behind > 0 {
		behind = fmt.Sprintf(", and %d more ports behind them", d.Behind)
	}
	return fmt.Sprintf("since %s, class %d: %s wait for each other%s", experiment.Duration(d.SinceNs), d.Class, strings.Join(d.Ports, ", "), behind)
}

// Wall is what a run cost, in the time of the machine. It differs from run to run.
type Wall struct {
	StartedAt time.Time `json:"started_at"`
	TotalS    float64   `json:"total_s"`
	BootS     float64   `json:"boot_s"`
	Host      string    `json:"host"`
}

// Verdict says whether a run can be believed.
type Verdict string

// A run is valid if it was on time and lost nothing.
const (
	Valid   Verdict = "valid"
	Invalid Verdict = "invalid"
)

// Flow is what one flow did.
type Flow struct {
	Name            string `csv:"flow"`
	Group           string `csv:"group"` // of the experiment's flows or bursts that it is of
	Scheme          string `csv:"scheme"`
	Src             string `csv:"src"` // host
	Dst             string `csv:"dst"` // host
	SrcAddr         string `csv:"src_addr"`
	SrcPort         uint16 `csv:"src_port"`
	DstAddr         string `csv:"dst_addr"`
	DstPort         uint16 `csv:"dst_port"`
	Proto           Proto  `csv:"proto"`
	Priority        uint8  `csv:"priority"` // of its data, 0 is the first
	StartNs         int64  `csv:"start_ns"`
	EndNs           *int64 `csv:"end_ns"`        // when the receiver got the last packet; nil if it did not
	CompletionNs    int64  `csv:"completion_ns"` // from the start until the sender of a flow with a size knew it had arrived; 0: it did not
	SentBytes       uint64 `csv:"sent_bytes"`
	ReceivedBytes   uint64 `csv:"received_bytes"`
	Packets         uint64 `csv:"packets"`        // received
	MarkedPackets   uint64 `csv:"marked_packets"` // received with CE
	EchoedPackets   uint64 `csv:"echoed_packets"` // marked, as far as the sender heard of it
	CNPDecrease     uint64 `csv:"cnp_decrease"`
	CNPIncrease     uint64 `csv:"cnp_increase"`
	SendRateBps     uint64 `csv:"send_rate_bps"` // of the control, at the end
	RecRateBps      uint64 `csv:"rec_rate_bps"`  // of the last CNP
	CwndPackets     uint64 `csv:"cwnd_packets"`  // at the end; 0 if the control goes by a rate
	SRTTNs          int64  `csv:"srtt_ns"`
	Retransmissions uint64 `csv:"retransmissions"`
	Timeouts        uint64 `csv:"timeouts"` // of TCP's retransmission timer
	ECN             bool   `csv:"ecn"`      // negotiated

	// Stats are the statistics of the control's algorithm at the end: a column each behind those above.
	Stats []Stat `csv:"-"`
}

// Stat is a statistic that a control's algorithm keeps of a flow.
type Stat struct {
	Key   string
	Value float64
}

// Completion is how long a flow with a size took.
type Completion struct {
	Flow      string   `csv:"flow"`
	Group     string   `csv:"group"`
	Src       string   `csv:"src"` // host
	Dst       string   `csv:"dst"` // host
	Priority  int      `csv:"priority"`
	SizeBytes uint64   `csv:"size_bytes"`
	StartNs   int64    `csv:"start_ns"`
	FCTNs     *int64   `csv:"fct_ns"`   // until its sender knew that all of it had arrived; nil if it did not
	IdealNs   int64    `csv:"ideal_ns"` // what that takes at line rate and alone
	Slowdown  *float64 `csv:"slowdown"` // fct_ns / ideal_ns, to 4 decimals
}

// NewCompletion returns a completion with its slowdown.
func NewCompletion(c Completion) Completion {
	if c.FCTNs != nil && c.IdealNs > 0 {
		c.Slowdown = new(math.Round(float64(*c.FCTNs)/float64(c.IdealNs)*1e4) / 1e4)
	}
	return c
}

// Proto is what a flow runs over. Bursts are UDP, controlled flows TCP.
type Proto string

// The transports of the lab.
const (
	TCP Proto = "tcp"
	UDP Proto = "udp"
)

// Port is what one egress port did. PAUSE frames that it sent or received are those
// on its link: a port S0->S1 is stopped by what it received from S1, and sent what
// stops the port S1->S0.
type Port struct {
	Name                  string `csv:"port"` // such as S0->S1
	Node                  string `csv:"node"`
	Peer                  string `csv:"peer"`
	Tier                  string `csv:"tier"` // of the node: host, or what switches as far from hosts are called
	RateBps               uint64 `csv:"rate_bps"`
	DelayNs               int64  `csv:"delay_ns"`
	EnqueuedPackets       uint64 `csv:"enqueued_packets"`
	EnqueuedBytes         uint64 `csv:"enqueued_bytes"`
	SentPackets           uint64 `csv:"sent_packets"`
	SentBytes             uint64 `csv:"sent_bytes"`
	QueuedPackets         uint64 `csv:"queued_packets"` // at the end
	MarkedPackets         uint64 `csv:"marked_packets"`
	DroppedBufferPackets  uint64 `csv:"dropped_buffer_packets"`  // refused: shared buffer full
	DroppedRingPackets    uint64 `csv:"dropped_ring_packets"`    // refused: ring full
	DroppedNoClassPackets uint64 `csv:"dropped_noclass_packets"` // refused: of no class
	DroppedResetPackets   uint64 `csv:"dropped_reset_packets"`   // were queued when the qdisc was reset
	DroppedWREDPackets    uint64 `csv:"dropped_wred_packets"`    // not ECN-capable, in a queue that is over WRED's threshold
	DroppedTailPackets    uint64 `csv:"dropped_tail_packets"`    // the queue was as long as a port's may be
	PauseSent             uint64 `csv:"pause_sent"`
	ResumeSent            uint64 `csv:"resume_sent"`
	PauseReceived         uint64 `csv:"pause_received"`
	ResumeReceived        uint64 `csv:"resume_received"`
	PausedNs              int64  `csv:"paused_ns"`
	QueueMaxBytes         uint64 `csv:"queue_max_bytes"`
	LatenessP50Ns         int64  `csv:"lateness_p50_ns"`
	LatenessP99Ns         int64  `csv:"lateness_p99_ns"`
	LatenessMaxNs         int64  `csv:"lateness_max_ns"`
}

// DroppedPackets returns how many packets the port dropped, for any reason.
func (p Port) DroppedPackets() uint64 {
	return p.RefusedPackets() + p.DroppedQueuedPackets()
}

// DroppedQueuedPackets returns how many packets the port took in, and then dropped: by WRED, behind a full queue, or at a reset.
func (p Port) DroppedQueuedPackets() uint64 {
	return p.DroppedWREDPackets + p.DroppedTailPackets + p.DroppedResetPackets
}

// RefusedPackets returns how many packets the port did not take in: no buffer, full ring, or of no class.
func (p Port) RefusedPackets() uint64 {
	return p.DroppedBufferPackets + p.DroppedRingPackets + p.DroppedNoClassPackets
}

// Kind is what a row of the series is about.
type Kind string

// The kinds of objects in the series.
const (
	KindPort   Kind = "port"
	KindFlow   Kind = "flow"   // what the receiver of a flow got
	KindSender Kind = "sender" // what the TCP sender of a flow knew at the end of the bin
)

// Sample is one flow, sender or port in one bin of time. A number that is not of its kind is 0.
type Sample struct {
	TimeNs int64 // start of the bin
	Kind   Kind
	Name   string // of the port or the flow
	// RateBps is what the port sent or the receiver of the flow got in the bin, in
	// Ethernet frames without FCS; or the rate by which the sender paces.
	RateBps uint64
	// QueueBytes is the queue of the port at the start of the bin.
	QueueBytes uint64
	// QueueMaxBytes is the longest queue of the port in the bin.
	QueueMaxBytes uint64
	// MarkedPackets is how many packets the port marked, or the flow received marked, in the bin.
	MarkedPackets uint64
	// CwndPackets is the congestion window of the sender; 0 if its control goes by a rate.
	CwndPackets uint64
	// SRTTNs is the smoothed round trip that the sender measures.
	SRTTNs int64
	// CNPs is how many CNPs or CNMs the sender has received so far.
	CNPs uint64
}

// PFCEvent is one PAUSE or RESUME frame.
type PFCEvent struct {
	SentNs   int64   `csv:"sent_ns"`
	EffectNs int64   `csv:"effect_ns"` // when it stops or restarts the port To->From
	From     string  `csv:"from"`      // node that sent it
	To       string  `csv:"to"`        // node it stops or restarts, with the suffix of the link if there are several
	Class    uint8   `csv:"class"`
	Kind     PFCKind `csv:"kind"`
}

// PauseRepeats are the PAUSE frames on a link in a bin of time, of a class, if switches repeated them as ns3-rdma's do:
// with each packet that finds the buffer over XOFF, and every 2.5 us in between.
type PauseRepeats struct {
	TimeNs int64  `csv:"time_ns"` // start of the bin
	From   string `csv:"from"`    // as in [PFCEvent]
	To     string `csv:"to"`
	Class  uint8  `csv:"class"`
	Frames uint64 `csv:"frames"`
}

// PFCKind is what a PFC frame does.
type PFCKind string

// The two frames of PFC that the lab has.
const (
	Pause  PFCKind = "pause"
	Resume PFCKind = "resume"
)
