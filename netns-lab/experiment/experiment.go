// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Experiment is an experiment file. What a file leaves out has its default.
type Experiment struct {
	// Name is that of the experiment and of its result folder: lower-case letters, digits and "-". Required.
	Name string `yaml:"name"`
	// Title is one line for the head of a report. Default: the name.
	Title string `yaml:"title"`
	// Topology is the fabric. Required.
	Topology Topology `yaml:"topology"`
	// Frame is the length of a full data frame: Ethernet header included, FCS not. 128B to 9018B, default 1000B.
	Frame Bytes `yaml:"frame"`
	// Switch is what every switch is configured as.
	Switch Switch `yaml:"switch"`
	// Schemes are the congestion controls to run, one run each: pfc (no end-to-end control) or pcn. Required.
	Schemes []string `yaml:"schemes"`
	// PCN holds the parameters of scheme pcn.
	PCN PCN `yaml:"pcn"`
	// Warmup is how long the flows run before t = 0. A multiple of Sample, default 1ms.
	Warmup Duration `yaml:"warmup"`
	// Duration is how long the run goes on after t = 0. A multiple of Sample. Required.
	Duration Duration `yaml:"duration"`
	// Sample is the length of a bin of the time series. Default 100us.
	Sample Duration `yaml:"sample"`
	// Dilation is the binary logarithm of how much slower than the paper's time the
	// run is: 10 runs 40Gbps as 39Mbps. 0 to 16, default 10.
	Dilation uint `yaml:"dilation"`
	// Seed starts every random choice of the run. Default 1.
	Seed uint64 `yaml:"seed"`
	// Flows are TCP flows under the scheme's control.
	Flows []Flow `yaml:"flows"`
	// Bursts are UDP and not controlled.
	Bursts []Burst `yaml:"bursts"`
	// Figures chooses what a report draws.
	Figures Figures `yaml:"figures"`
	// Expect holds what the paper reports, to compare with.
	Expect []Expect `yaml:"expect"`

	source []byte
}

// Switch is the configuration of a switch.
type Switch struct {
	// Buffer is shared by all ports of a switch. Default 32MB.
	Buffer Bytes `yaml:"buffer"`
	// PFC says when a switch pauses what sends to it.
	PFC PFC `yaml:"pfc"`
}

// PFC holds the thresholds of Priority-based Flow Control (IEEE 802.1Qbb), for each
// ingress port and class. They are static unless Dynamic is set.
type PFC struct {
	// XOFF is how many bytes an ingress port may hold before it sends PAUSE. Default 512KB (PCN, section 7).
	XOFF Bytes `yaml:"xoff"`
	// XON is how many bytes an ingress port holds when it sends RESUME. At most XOFF, default two frames below it.
	XON Bytes `yaml:"xon"`
	// Dynamic makes the threshold follow the free buffer instead.
	Dynamic *DynamicPFC `yaml:"dynamic"`
}

// DynamicPFC is a threshold that shrinks as the shared buffer fills:
// XOFF = Alpha * (buffer - used), XON = XOFF - XONOffset.
type DynamicPFC struct {
	// Alpha is the share of the free buffer that one ingress port may hold. Above 0, at most 16. Required.
	Alpha Ratio `yaml:"alpha"`
	// XONOffset is how far below XOFF a RESUME is sent. Default two frames.
	XONOffset Bytes `yaml:"xon_offset"`
}

// PCN holds the parameters of Photonic Congestion Notification (NSDI'20, section 4).
type PCN struct {
	// T is the period at which a receiver sends CNPs. Default 50us.
	T Duration `yaml:"T"`
	// TJitter makes each window T * (1 +- TJitter), so that flows do not keep their phase. 0 to 0.5, default 0.
	TJitter Ratio `yaml:"T_jitter"`
	// WMin is w_min of Algorithm 1. Above 0, at most WMax, default 1/128.
	WMin Ratio `yaml:"w_min"`
	// WMax is w_max of Algorithm 1. At most 1, default 0.5.
	WMax Ratio `yaml:"w_max"`
	// CongestedShare is the share of marked packets above which a receiver asks for a decrease. 0 to 1, default 0.95.
	CongestedShare Ratio `yaml:"congested_share"`
}

// Flow is a TCP flow.
type Flow struct {
	// Name is unique in the file. Required.
	Name string `yaml:"name"`
	// From and To are hosts. Required.
	From string `yaml:"from"`
	To   string `yaml:"to"`
	// Start is when the flow starts. From -warmup, which is the default, to the end of the run.
	Start Duration `yaml:"start"`
	// Size is how much data the flow sends; 0 is without end and the default.
	Size Bytes `yaml:"size"`
	// InitialRate is the rate at which the flow starts, and stays at under scheme pfc. Default: the rate of the links.
	InitialRate Rate `yaml:"initial_rate"`
	// LimitRate is a rate the flow never exceeds. Default: the rate of the links.
	LimitRate Rate `yaml:"limit_rate"`
}

// Burst is a number of hosts that send at line rate, all at the same time.
type Burst struct {
	// Name is unique in the file, among flows too. Required.
	Name string `yaml:"name"`
	// From are the sending hosts, such as H2..H15. Required.
	From NodeList `yaml:"from"`
	// To is the receiving host. Required.
	To string `yaml:"to"`
	// At is when the burst starts. Default 0.
	At Duration `yaml:"at"`
	// Flows is how many flows each host sends. 1 to 1024, default 1.
	Flows int `yaml:"flows"`
	// Size is how much each flow sends. Required.
	Size Bytes `yaml:"size"`
}

// Figures chooses what a report draws. What is left out, the report chooses.
type Figures struct {
	// Pause are links in the direction of the PAUSE frames, the one drawn at the back first.
	Pause []string `yaml:"pause"`
	// Throughput are flows, the one stacked on top first.
	Throughput []string `yaml:"throughput"`
	// Queues are egress ports.
	Queues []string `yaml:"queues"`
}

// Expect is a bound on a metric of a run. The metric has a value for each of the
// links or flows, and every one of them must be within [Min, Max].
type Expect struct {
	// What says in words what is expected. Required.
	What string `yaml:"what"`
	// Scheme is the one whose run is measured. Default: that of every scheme.
	Scheme string `yaml:"scheme"`
	// Metric is what is measured. Required.
	Metric Metric `yaml:"metric"`
	// Links are measured one by one, in the direction of the PAUSE frames.
	Links []string `yaml:"links"`
	// Flows are measured one by one; F0+F1 is the sum of two.
	Flows []string `yaml:"flows"`
	// From and To are the window. Default: from t = 0 to the end of the run, which To = 0 stands for.
	From Duration `yaml:"from"`
	To   Duration `yaml:"to"`
	// Since is where a recovery is counted from. Default: start.
	Since Since `yaml:"since"`
	// Target is the rate a recovery comes back to.
	Target Rate `yaml:"target"`
	// Hold is how long a recovery must last to count. Default 500us.
	Hold Duration `yaml:"hold"`
	// Min and Max are the bounds; at least one is required.
	Min *Quantity `yaml:"min"`
	Max *Quantity `yaml:"max"`
	// Paper is what the paper reports, as it is to be printed.
	Paper string `yaml:"paper"`
}

// SumOf returns the flows that an entry of [Expect.Flows] adds up.
func SumOf(flows string) []string {
	return strings.Split(flows, "+")
}

// schemes are the congestion controls that an experiment can ask for.
var schemes = []string{"pfc", "pcn"}

// defaults returns what a file that says nothing means. Defaults that depend on
// other values are filled in by [decoder.fill].
func defaults() Experiment {
	return Experiment{
		Topology: Topology{BurstHosts: 14, Rate: 40e9, Delay: 5 * Microsecond},
		Frame:    1000,
		Switch:   Switch{Buffer: 32e6, PFC: PFC{XOFF: 512e3}},
		PCN:      PCN{T: 50 * Microsecond, WMin: 1.0 / 128, WMax: 0.5, CongestedShare: 0.95},
		Warmup:   Millisecond,
		Sample:   100 * Microsecond,
		Dilation: 10,
		Seed:     1,
	}
}

// Load reads an experiment file.
func Load(path string) (*Experiment, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read experiment file: %w", err)
	}
	return Parse(path, data)
}

// Parse parses an experiment file. The name stands for the file in errors. The
// error joins an [*Error] for each thing that is wrong, in the order of the file.
func Parse(name string, data []byte) (*Experiment, error) {
	d := newDecoder(name)
	e := defaults()
	if root := d.root(data); root != nil {
		d.decode(root, &e)
		d.fill(&e)
		d.validate(&e)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	e.source = bytes.Clone(data)
	return &e, nil
}

// Source returns the file that the experiment was parsed from.
func (e *Experiment) Source() []byte {
	return bytes.Clone(e.source)
}

// Hash returns the SHA-256 of the file that the experiment was parsed from, in
// hexadecimal. An [Experiment.Override] does not change it.
func (e *Experiment) Hash() string {
	sum := sha256.Sum256(e.source)
	return hex.EncodeToString(sum[:])
}

// Override is what the command line changes about an experiment. A nil field
// changes nothing.
type Override struct {
	Seed     *uint64
	Duration *Duration
	Dilation *uint
	Schemes  []string
}

// Override returns a copy of the experiment with some values replaced. Schemes
// must be among those of the file.
func (e *Experiment) Override(o Override) (*Experiment, error) {
	c := *e
	if o.Seed != nil {
		c.Seed = *o.Seed
	}
	if o.Duration != nil {
		c.Duration = *o.Duration
	}
	if o.Dilation != nil {
		c.Dilation = *o.Dilation
	}
	if o.Schemes != nil {
		c.Schemes = slices.Clone(o.Schemes)
	}
	for _, s := range c.Schemes {
		if !slices.Contains(e.Schemes, s) {
			return nil, fmt.Errorf("experiment %s has no scheme %q (hint: it has %s)", e.Name, s, strings.Join(e.Schemes, ", "))
		}
	}
	d := newDecoder("override of experiment " + e.Name)
	d.validateTime(&c)
	d.validateStarts(&c)
	d.validateSchemes(&c)
	if err := d.err(); err != nil {
		return nil, err
	}
	return &c, nil
}
