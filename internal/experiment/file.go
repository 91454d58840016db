// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/image"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/workload"
)

// Experiment is an experiment file. Keys that a file leaves out have their defaults.
type Experiment struct {
	// Name is the name of the experiment and of its result folder: lower-case letters, digits and
	// "-". Required.
	Name string `yaml:"name"`
	// Title is one line for the head of a report. Default: the name.
	Title string `yaml:"title"`
	// About says in two or three sentences who sends what to whom, and what to look at, for the
	// head of a report. Default: none.
	About string `yaml:"about"`
	// Cost is how much the experiment is to run, for `pcn list` and estimates.
	Cost Cost `yaml:"cost"`
	// Topology is the network. Required.
	Topology Topology `yaml:"topology"`
	// Frame is the length of a full data frame: Ethernet header included, FCS not. 128B to 9018B,
	// in the simulator to 9216B; default 1000B.
	Frame Bytes `yaml:"frame"`
	// Switch is the configuration of every switch.
	Switch Switch `yaml:"switch"`
	// Schemes are the schemes to run, one run each: those of [scheme.Builtin], the experiment's
	// own, and the kernel's controls. Required.
	Schemes []string `yaml:"schemes"`
	// Algorithms are the user's own schemes: the C files of their controls, by name.
	Algorithms map[string]string `yaml:"algorithms"`
	// Engine runs the experiment: kernel, which is Linux (default), sim, an ideal network, or
	// fluid, the theory of its algorithms.
	Engine Engine `yaml:"engine"`
	// Kernel is the Linux of an experiment on Linux: a name that pcn kernel build gave, or as
	// --kernel of pcn run takes it. Default: the one that was tested.
	Kernel string `yaml:"kernel"`
	// Marking replaces the marking of every scheme that needs ECN, except pcn. Default: each
	// scheme's own, see [Experiment.MarkingOf].
	Marking *Marking `yaml:"marking"`
	// Marker is the rule by which switches mark in place of RED: red (default), or npecn, PCN's.
	// Schemes with TCD keep theirs.
	Marker MarkingRule `yaml:"marker"`
	// FECN is how switches mark under ibcc, TCD how they mark under schemes with "+tcd".
	FECN FECN `yaml:"fecn"`
	TCD  TCD  `yaml:"tcd"`
	// Warmup is how long the flows run before t = 0. A multiple of Sample, default 1ms.
	Warmup Duration `yaml:"warmup"`
	// Duration is how long the run lasts after t = 0. A multiple of Sample. Required.
	Duration Duration `yaml:"duration"`
	// Sample is the length of a bin of the time series. Default 100us.
	Sample Duration `yaml:"sample"`
	// Dilation is the binary logarithm of how much slower than the paper the run is: 10 runs 40Gbps
	// as 39Mbps. 0 to 16, or auto, the default: 0 in User Mode Linux, where CPUs take no time, and
	// else chosen from the network and the traffic.
	Dilation Dilation `yaml:"dilation"`
	// AckEvery is how many packets a receiver acknowledges at once, 1 or 2. Default 1.
	AckEvery int `yaml:"ack_every"`
	// Noise is what makes hosts see late what arrives. Default: they see it at once.
	Noise Noise `yaml:"noise"`
	// Seed starts every random choice of the run. Default 1.
	Seed uint64 `yaml:"seed"`
	// Seeds replaces Seed: the experiment runs once with each, and bounds are for the medians. A
	// list, or a range such as 1..100. Default: none.
	Seeds Seeds `yaml:"seeds"`
	// FlowGroups are TCP flows that the scheme controls.
	FlowGroups []FlowGroup `yaml:"flows"`
	// Trace adds flows from a file.
	Trace Trace `yaml:"trace"`
	// Workload adds random flows.
	Workload Workloads `yaml:"workload"`
	// Collectives are operations of the hosts of a job, as TCP flows.
	Collectives Collectives `yaml:"collective"`
	// Bursts are UDP flows without congestion control.
	Bursts []Burst `yaml:"bursts"`
	// Programs run on hosts, in virtual time. They need User Mode Linux.
	Programs []Program `yaml:"programs"`
	// NFT are rules of nftables by host or switch: a text, or the name of a file. They hold from
	// the start. A switch with rules, which may be none (""), is a router: Linux forwards there.
	// Default: no rules, and switches that only switch. Only User Mode Linux has them.
	NFT map[string]string `yaml:"nft"`
	// Captures are hosts whose packets are recorded, each with the ns at which its device sent or
	// received it. Default: none.
	Captures []string `yaml:"captures"`
	// Transport is how simulated hosts send.
	Transport Transport `yaml:"transport"`
	// LinkEvents change the rate of a port, or the state of a link, during the run.
	LinkEvents []LinkEvent `yaml:"links"`
	// Partitions are hosts that are cut off from the others for a while. Only Linux has them.
	Partitions []Partition `yaml:"partitions"`
	// Storms are hosts whose network adapters send PAUSE without an end.
	Storms []Storm `yaml:"storms"`
	// Files holds the texts of the files that the experiment names, by name. Default: [Load] reads
	// them from the folder of the experiment's file and embeds them in its source, so that a result
	// is complete.
	Files map[string]string `yaml:"files"`
	// Cases are variations of the experiment, which all run. Default: one without a name that
	// changes nothing.
	Cases []Case `yaml:"cases"`
	// Figures chooses what a report draws.
	Figures Figures `yaml:"figures"`
	// Expect holds bounds on metrics, such as the values that the paper reports.
	Expect []Expect `yaml:"expect"`
	// Compare holds comparisons of schemes with the paper and with each other.
	Compare []Compare `yaml:"compare"`
	// Metrics are measured but not checked.
	Metrics []NamedMetric `yaml:"metrics"`

	// Flows lists all flows: those of the FlowGroups, then of the Collectives, of the Trace, and of
	// the Workload.
	Flows []Flow
	// Waits say what of the flows' data waits for that of others.
	Waits []Wait
	// CaseName is the name of the case if this is one, see [Experiment.Case]; else empty.
	CaseName string

	parameters parameters          // one section per scheme
	hostRates  map[string]Rate     // line rates, see [Experiment.HostRate]
	simOnly    []string            // paths of keys that only the simulator knows
	linuxOnly  []string            // paths of keys that only Linux knows
	traces     map[string][]uint32 // of links, by their ports
	// texts that the programs name, by name
	inputs map[string]string
	images map[string]*image.Image // of programs, by name

	warnings []string        // see [Experiment.Warnings]
	specs    []workload.Spec // of the Workload
	given    int             // number of Flows that are not from a Workload
	within   []Wait          // those of the Waits that are within a collective
	source   []byte
	variants map[string]*Experiment // the experiment of each case
	origin   origin
	chosen   Changes // of the origin, by [Experiment.With]: without Set and Metrics
}

// Cost says how much an experiment is to run.
type Cost struct {
	// Packets is how many packets the ports send in all runs together: the sum of sent_packets in
	// the ports.csv of all. Default 0: not known, and taken to be as many as the links carry.
	Packets uint64 `yaml:"packets"`
}

// Switch is the configuration of a switch.
type Switch struct {
	// Buffer is shared by all ports of a switch. Default 32MB.
	Buffer Bytes `yaml:"buffer"`
	// PortBuffer is the longest queue of an egress port: a packet that would make it longer is
	// dropped. Ten frames to Buffer, default 0: only the shared buffer bounds it.
	PortBuffer Bytes `yaml:"port_buffer"`
	// ECMP is what switches spread over several shortest paths: each flow, by a hash (default), or
	// each packet, at random. Only the simulator spreads packets.
	ECMP ECMP `yaml:"ecmp"`
	// MarkingByRate makes the thresholds of marking and of WRED those of a port at the rate of the
	// topology: of any other, they are in proportion to its link's rate. Default false.
	MarkingByRate bool `yaml:"marking_by_rate"`
	// FlowControl is pfc (default) or cbfc.
	FlowControl FlowControl `yaml:"flow_control"`
	// PFC says when a switch pauses its neighbours.
	PFC PFC `yaml:"pfc"`
	// CBFC says which credits a switch grants its neighbours, in place of PFC.
	CBFC CBFC `yaml:"cbfc"`
	// Qdisc is a qdisc of Linux in which packets wait for a port of a switch, as tc takes it, such
	// as fq_codel limit 1000. The link's rate shapes it. Default: none, the lab's own queue. Only
	// User Mode Linux has it.
	Qdisc string `yaml:"qdisc"`
	// Detectors makes switch ports record what TCD, NP-ECN, ECN and FECN would mark, besides the
	// scheme's own marks. Results compare that with the true congestion, which follows from the
	// rates of all flows. Default false.
	Detectors bool `yaml:"detectors"`
	// Own are switches with values of their own. Only the simulator has them.
	Own []OwnSwitch `yaml:"own"`
	// Classes are priorities whose data switches treat in another way: lossy, or with a weight.
	// Default: all are lossless where PFC is on, and served by strict priority. Only the simulator
	// has them.
	Classes []Class `yaml:"classes"`
	// Schedule is how classes with weights share a link: dwrr, by bytes, or wrr, by packets.
	// Default dwrr.
	Schedule Schedule `yaml:"schedule"`
}

// PFC holds the thresholds of Priority-based Flow Control (IEEE 802.1Qbb), for each
// ingress port and class. They are static unless Dynamic is set.
type PFC struct {
	// Off makes the network lossy: no PAUSE, and a full buffer drops. Drops and retransmissions
	// then do not make a run invalid. Default false.
	Off bool `yaml:"off"`
	// Schemes are the schemes that run with PFC; the others have a lossy network, as with Off.
	// Default: all.
	Schemes []string `yaml:"schemes"`
	// XOFF is how many bytes an ingress port may hold before it sends PAUSE. Default 512KB (PCN,
	// section 7).
	XOFF Bytes `yaml:"xoff"`
	// PauseTime is how long a PAUSE stops a port, unless a RESUME or another PAUSE comes before.
	// 1us to 10ms, default 0: until the RESUME. Only the simulator has it.
	PauseTime Duration `yaml:"pause_time"`
	// PauseRepeat is after how long a switch repeats its PAUSE while it needs one. Below PauseTime,
	// default half of it; 0: it sends another only if it needs one when the last has expired.
	PauseRepeat Duration `yaml:"pause_repeat"`
	// RepeatPairs has pause_repeats.csv count by a timer of each pair of ports, that a packet came
	// in by and leaves by, as in ns3-rdma; default false: by one timer of each port that packets
	// come in by. On Linux it is always false.
	RepeatPairs bool `yaml:"repeat_pairs"`
	// XON is how many bytes an ingress port holds when it sends RESUME. At most XOFF, default two
	// frames below it.
	XON Bytes `yaml:"xon"`
	// Watchdog looks for queues that stay paused, and drops or forwards what is in them. Default:
	// none.
	Watchdog *Watchdog `yaml:"watchdog"`
	// Dynamic replaces the fixed thresholds by ones that follow the free buffer.
	Dynamic *DynamicPFC `yaml:"dynamic"`
}

// DynamicPFC is a threshold that shrinks as the shared buffer fills:
// XOFF = Alpha * (buffer - used), XON = XOFF - XONOffset.
type DynamicPFC struct {
	// Alpha is the share of the free buffer that one ingress port may hold. Above 0, at most 16.
	// Required.
	Alpha Ratio `yaml:"alpha"`
	// XONOffset is how far below XOFF a RESUME is sent. Default two frames.
	XONOffset Bytes `yaml:"xon_offset"`
	// ByRate makes Alpha that of an ingress port at the rate of the topology: of any other, it is
	// in proportion to its link's rate, up to 16. Default false.
	ByRate bool `yaml:"by_rate"`
	// Headroom is what an ingress port may hold beyond its XOFF, in the rate of its link times the
	// delay: what arrives between a PAUSE and its effect. It is not part of the shared buffer. Up
	// to 100, default 0: it comes out of the shared buffer. Only the simulator has it.
	Headroom Ratio `yaml:"headroom"`
	// Reserve is what each ingress port may hold before it uses the shared buffer. 0, the default,
	// to 1MB. Only the simulator has it.
	Reserve Bytes `yaml:"reserve"`
}

// FlowGroup is a TCP flow, or several that differ only in host and start.
type FlowGroup struct {
	// Name is unique in the file. Required.
	Name string `yaml:"name"`
	// From are the sending hosts, such as H0 or H0..H49. Required.
	From NodeList `yaml:"from"`
	// To are the receiving hosts: one for all, or as many as From, paired in order. Required.
	To NodeList `yaml:"to"`
	// Priority is the priority of the flows' data: 0, the highest, to 3, or 6 in the simulator;
	// default 0; see [DataClass].
	Priority int `yaml:"priority"`
	// Count is how many flows each host sends. 1 to 100000, default 1.
	Count int `yaml:"count"`
	// Start is when the first flow of each host starts. From -warmup, which is the default, to the
	// end of the run.
	Start Duration `yaml:"start"`
	// After is what all the group's flows wait for, in place of Start: they start when all data of
	// the named flows and groups has arrived at its receivers, plus a delay: F0 + 10us. One or a
	// list. Default: none.
	After After `yaml:"after"`
	// Every is the time between the starts of a host's flows. Default 0: all start together.
	Every Duration `yaml:"every"`
	// StartJitter delays each start by a random time below it, by the seed, so that flows are not
	// in phase. 0, the default, to 1s: flows start exactly when the file says.
	StartJitter Duration `yaml:"start_jitter"`
	// Size is how much data each flow sends. Default 0: it never ends.
	Size Bytes `yaml:"size"`
	// Lasts is how long each flow sends, in place of Size: it then leaves, whatever is on its way.
	// 1us to the longest duration, default 0: it never ends.
	Lasts Duration `yaml:"lasts"`
	// InitialRate is the rate at which a flow starts; under scheme pfc it keeps this rate. Default:
	// LimitRate.
	InitialRate Rate `yaml:"initial_rate"`
	// LimitRate is a rate a flow never exceeds. Default: the rate of its host's own link, which is
	// the most too.
	LimitRate Rate `yaml:"limit_rate"`
	// Control is one of Linux's congestion controls, which the flows have in place of the scheme's.
	// Default: the scheme's. Only Linux has it.
	Control string `yaml:"control"`
}

// Flow is one TCP flow.
type Flow struct {
	// Name is the name of the group or, if the group has several flows, GROUP-HOST-NUMBER, such as
	// F-H0-0.
	Name string
	// Group is the name of the group.
	Group string
	// From and To are hosts.
	From, To string
	// Priority, Start, StartJitter, Size, Lasts, InitialRate, LimitRate and Control are those of
	// the [FlowGroup].
	Priority    int
	Start       Duration
	StartJitter Duration
	Size        Bytes
	Lasts       Duration
	InitialRate Rate
	LimitRate   Rate
	Control     string
	// Traced is whether the flow is out of a trace or a workload.
	Traced bool
	// Message is the length of each message that the data of a collective's flow is in, and a part
	// of Size. Each ends with a frame of its own. 0: all data is one message.
	Message Bytes
	// Begins is whether the first message needs what its host computes, in a collective: it waits
	// for what the collective waits for.
	Begins bool
}

// Priorities is the number of priorities of data on Linux; 0 is the highest. The simulator has
// SimPriorities: with that of control packets its ports have eight classes, as real ones.
const (
	Priorities    = 4
	SimPriorities = 7
)

// DataClass returns the traffic class of a priority: 3 for priority 0, 0 for priority 3. Ports
// serve higher classes first, and pause each separately. The simulator's further priorities have
// the classes that are left, 4, 5 and 7, and are served last.
func DataClass(priority int) uint8 {
	if priority < Priorities {
		return uint8(Priorities - 1 - priority)
	}
	return [...]uint8{4, 5, 7}[priority-Priorities]
}

// DataClasses returns the classes of the experiment's data, that of priority 0 always among them.
func (e *Experiment) DataClasses() []uint8 {
	used := [SimPriorities]bool{0: true}
	for _, f := range e.Flows {
		used[f.Priority] = true
	}
	for _, b := range e.Bursts {
		used[b.Priority] = true
	}
	var classes []uint8
	for priority, is := range used {
		if is {
			classes = append(classes, DataClass(priority))
		}
	}
	return classes
}

// EachPath calls see with the sender and receiver of each flow, bursts' too.
func (e *Experiment) EachPath(see func(from, to string)) {
	for _, f := range e.Flows {
		see(f.From, f.To)
	}
	for _, b := range e.Bursts {
		for _, from := range b.From {
			see(from, b.To)
		}
	}
}

// BaseRTTNs is the round trip of the longest path that a flow takes, or that is between hosts with
// programs, in propagation delays alone.
func (e *Experiment) BaseRTTNs(routes *network.Routes) uint64 {
	var longestNs uint64
	longer := func(from, to string) { longestNs = max(longestNs, routes.BetweenNs(from, to)) }
	e.EachPath(longer)
	routers := e.Routers() // which are on hosts' paths
	for _, a := range e.Programs {
		for _, b := range e.Programs {
			if a.Host != b.Host && !slices.Contains(routers, a.Host) &&
				!slices.Contains(routers, b.Host) {
				longer(a.Host, b.Host)
			}
		}
	}
	for _, p := range e.Programs {
		if longestNs > 0 {
			break
		}
		if slices.Contains(routers, p.Host) { // on the paths of any hosts
			_, longestNs = routes.Longest()
			continue
		}
		for _, to := range e.Topology.Network().Hosts { // of one host: to whom it speaks is its own
			longer(p.Host, to)
		}
	}
	return 2 * longestNs
}

// size returns the number of flows of the group, limited if it has too many.
func (g FlowGroup) size() int {
	return len(g.From) * min(max(g.Count, 0), maxFlows+1)
}

// flows returns the flows of the group, host by host.
func (g FlowGroup) flows() []Flow {
	var flows []Flow
	for i, from := range g.From {
		for k := range g.Count {
			f := Flow{
				Name: g.Name, Group: g.Name, From: from, To: g.receiver(i), Priority: g.Priority,
				Start: g.Start + Duration(k)*g.Every, StartJitter: g.StartJitter,
				Size: g.Size, Lasts: g.Lasts, InitialRate: g.InitialRate, LimitRate: g.LimitRate,
				Control: g.Control,
			}
			if g.size() > 1 {
				f.Name = fmt.Sprintf("%s-%s-%d", g.Name, from, k)
			}
			flows = append(flows, f)
		}
	}
	return flows
}

// receiver returns the receiver for host i of From; it is empty if To has a wrong length, which
// validation reports.
func (g FlowGroup) receiver(i int) string {
	if len(g.To) == 1 {
		i = 0
	}
	if i >= len(g.To) {
		return ""
	}
	return g.To[i]
}

// fitting returns how many flows of a host could start in a run that ends at duration.
func (g FlowGroup) fitting(duration Duration) int {
	if g.Start >= duration {
		return 0
	}
	return int((duration-1-g.Start)/max(g.Every, 1)) + 1
}

// Trace names a file of TCP flows. They are named t0, t1 and on, and their group is t.
type Trace struct {
	// File is a trace of package workload, a flow file of HPCC's simulator or of ns3-rdma, or a
	// schedule in GOAL's text form. Required.
	File string `yaml:"file"`
	// Ranks are the hosts of a GOAL schedule's ranks, rank 0 first. Default: all hosts, in the
	// order of the topology.
	Ranks NodeList `yaml:"ranks"`
	// Format is the simulator whose flow file it is: hpcc (default), or ns3-rdma, from which that
	// of TCD's authors derives.
	Format FlowFormat `yaml:"format"`
	// Packet is how many bytes a packet of ns3-rdma carries. 1B to 9000B, default 1000B.
	Packet Bytes `yaml:"packet"`
}

// Burst is a set of hosts that send at line rate at the same time.
type Burst struct {
	// Name is unique in the file, among flows too. Required.
	Name string `yaml:"name"`
	// From are the sending hosts, such as H2..H15. Required.
	From NodeList `yaml:"from"`
	// To is the receiving host. Required.
	To string `yaml:"to"`
	// Priority is the priority of the packets: 0, the highest, to 3, or 6 in the simulator; default
	// 0; see [DataClass].
	Priority int `yaml:"priority"`
	// At is when the burst starts. Default 0.
	At Duration `yaml:"at"`
	// Flows is how many flows each host sends. 1 to 1024, default 1.
	Flows int `yaml:"flows"`
	// Size is how much each flow sends. Required.
	Size Bytes `yaml:"size"`
	// Rate is the rate of each flow, whose packets are then evenly spaced and ECN-capable. Default:
	// all packets leave at once, at line rate.
	Rate Rate `yaml:"rate"`
	// Every is the time after which the burst starts again, as new flows. Default 0: never.
	Every Duration `yaml:"every"`
	// Times is how often the burst starts, if Every is given. Default 0: until the end of the run.
	Times int `yaml:"times"`
}

// Starts returns when the burst starts in a run that ends at duration.
func (b Burst) Starts(duration Duration) []Duration {
	starts := make([]Duration, b.repetitions(duration))
	for k := range starts {
		starts[k] = b.At + Duration(k)*b.Every
	}
	return starts
}

// repetitions returns how often the burst starts in a run that ends at duration.
func (b Burst) repetitions(duration Duration) int {
	switch fit := b.fitting(duration); {
	case b.Every == 0:
		return min(fit, 1)
	case b.Times == 0:
		return fit
	default:
		return min(fit, b.Times)
	}
}

// fitting returns how often the burst could start, once every Every, in a run that ends at
// duration.
func (b Burst) fitting(duration Duration) int {
	if b.At >= duration {
		return 0
	}
	return int((duration-1-b.At)/max(b.Every, 1)) + 1
}

// LinkEvent changes the rate of a port, at most 64 times each, or the state of a link, or has a
// port follow a trace.
type LinkEvent struct {
	// At is the time of the change. From -warmup to the end of the run, default 0.
	At Duration `yaml:"at"`
	// Port is the egress port, such as S0->R0. With State it is a link, such as S0-S1: all between
	// the two nodes, or one of several, S0-S1.1. Required.
	Port string `yaml:"link"`
	// Rate is the port's new rate. 1kbps to 800Gbps, in the simulator to 4Tbps. It, State or Trace
	// is required.
	Rate Rate `yaml:"rate"`
	// State is down if the link fails, up if it comes back. Packets in its queues and on its wire
	// are lost, and switches route around it at once. On Linux what hosts send into it is lost,
	// too; it needs a lossy network there.
	State LinkState `yaml:"state"`
	// Trace is a file of mahimahi's: each line is a time in ms at which the port sends up to 1500
	// bytes, in place of its rate. Behind the last the trace begins again. Only Linux has it.
	Trace string `yaml:"trace"`
}

// defaults returns the defaults that depend on no other values; [decoder.fill] sets the others.
func defaults(c *scheme.Catalogue) Experiment {
	return Experiment{
		parameters: newParameters(c),
		Topology:   Topology{Rate: 40e9, Delay: 5 * Microsecond},
		Frame:      1000,
		Switch: Switch{Buffer: 32e6, FlowControl: FlowPFC, PFC: PFC{XOFF: 512e3},
			CBFC: CBFC{Buffer: 280e3, Period: 20 * Microsecond}, ECMP: ECMPFlow},
		Transport: Transport{Recovery: RecoverySACK, Acks: ReplyControl, AckSize: tcpAckBytes},
		Trace:     Trace{Format: FlowsHPCC, Packet: 1000},
		Marker:    MarkRED,
		FECN:      FECN{Threshold: 50e3},
		TCD:       TCD{Epsilon: 0.05},
		Warmup:    Millisecond,
		Sample:    100 * Microsecond,
		Dilation:  Dilation{Auto: true},
		AckEvery:  1,
		Seed:      1,
		Engine:    EngineKernel,
	}
}

// Load reads an experiment file and the files that it names, whose paths are relative to it.
func Load(path string) (*Experiment, error) { return LoadWith(path, Options{}) }

// LoadWith is Load with options.
func LoadWith(path string, o Options) (*Experiment, error) {
	data, err := config.ReadFile(path, config.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("read experiment file: %w", err)
	}
	return parse(path, data, filepath.Dir(path), o)
}

// Parse parses an experiment file that embeds all files that it names. Errors call the file name.
// The error joins an [*Error] for each mistake, in the order of the file.
func Parse(name string, data []byte) (*Experiment, error) {
	return ParseWith(name, data, Options{})
}

// ParseWith is Parse with options.
func ParseWith(name string, data []byte, o Options) (*Experiment, error) {
	return parse(name, data, "", o)
}

// parse parses an experiment file whose other files are in the folder dir.
func parse(name string, data []byte, dir string, o Options) (*Experiment, error) {
	data, err := withOwn(name, data, o.Own)
	if err != nil {
		return nil, err
	}
	d := newDecoder(name)
	d.attached.dir, d.options = dir, o
	root := d.Root(data)
	if root != nil {
		d.addOwn(root)
	}
	if err := d.Err(); err != nil {
		return nil, err // keys of a scheme that does not compile would all be unknown
	}
	e := d.experiment(root, "")
	e.warnings = append(e.warnings, d.warnings...)
	if len(d.Errs) == 0 {
		e.variants = d.variants(e)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	if e.source, err = attach(name, data, d.attached.read); err != nil {
		return nil, err
	}
	for _, v := range e.variants {
		v.source = e.source
	}
	return e, nil
}

// experiment decodes the mapping root, which may be nil, as the case of this name; an empty name is
// none.
func (d *decoder) experiment(root *yaml.Node, caseName string) *Experiment {
	e := defaults(d.catalogue)
	e.CaseName = caseName
	if root != nil {
		d.Decode(d.choose(root), &e)
		d.fill(&e)
		d.validate(&e)
	}
	e.origin, e.chosen = d.originOf(root, &e), d.chosen
	return &e
}

// PFCOn reports whether the network is lossless under a scheme.
func (e *Experiment) PFCOn(scheme string) bool {
	if e.Switch.FlowControl == FlowCBFC {
		return true
	}
	pfc := e.Switch.PFC
	return !pfc.Off && (len(pfc.Schemes) == 0 || slices.Contains(pfc.Schemes, scheme))
}

// Source returns the file that the experiment was parsed from, with the files that it names
// embedded.
func (e *Experiment) Source() []byte {
	return bytes.Clone(e.source)
}

// Hash returns the SHA-256 of [Experiment.Source], in hexadecimal. What [Experiment.With] chooses
// does not change it.
func (e *Experiment) Hash() string {
	sum := sha256.Sum256(e.source)
	return hex.EncodeToString(sum[:])
}
