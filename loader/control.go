// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Limits of the parameters, as the BPF code is proven for.
const (
	MaxDilationShift = 20
	MaxRateBps       = 800_000_000_000

	// MinSendRateBps is the default floor of sendRate: RecRate is in units of 1 Mbit/s.
	MinSendRateBps = 1_000_000

	// qShift is the fixed point of fractions in bpf/algo/fixed.h.
	qShift = 24
)

// q24 is a fraction as the BPF code has it.
func q24(f float64) uint32 { return uint32(math.Round(f * (1 << qShift))) }

// Control is a congestion control registered with the kernel.
type Control struct {
	name string
	tcd  bool

	rateUnitBps uint32
	coll        *ebpf.Collection
	link        link.Link
	params      any // the algorithm's, in the layout of the BPF code
	table       flowTable
	flows       *ebpf.Map
	limits      limits

	fingerprint string
	linkless    bool // it is registered by its map, and stays so until Close, also when this process ends
}

// limits of a flow's rate.
type limits struct{ minBps, lineBps uint64 }

// Name is what sockets select it by.
func (c *Control) Name() string { return c.name }

// TCD says whether the control goes by TCD's marks.
func (c *Control) TCD() bool { return c.tcd }

// RateUnitBps is what PCN's RecRate counts; 0: what it does in the paper.
func (c *Control) RateUnitBps() uint32 { return c.rateUnitBps }

// Params are the algorithm's parameters in the layout of the BPF code, for tc.LoadRP.
func (c *Control) Params() any { return c.params }

// Close takes the control's name from the kernel, unless its link is pinned. Sockets that use it keep it until they end.
func (c *Control) Close() error {
	if c.coll == nil {
		return nil // the kernel's own, or another process's
	}
	defer c.coll.Close()
	if c.linkless {
		if err := c.coll.Maps[opsMap].Delete(uint32(0)); err != nil {
			return fmt.Errorf("unregister congestion control %s: %w", c.name, err)
		}
		return nil
	}
	if c.link == nil {
		return nil // it is not registered
	}
	if err := c.link.Close(); err != nil {
		return fmt.Errorf("unregister congestion control %s: %w", c.name, err)
	}
	return nil
}

// PCNOptions are the parameters of PCN's reaction point (Algorithm 1).
type PCNOptions struct {
	LineRateBps   uint64  // rate at which flows start and to which they grow, 1 to MaxRateBps
	MinRateBps    uint64  // floor of sendRate; 0: MinSendRateBps
	WMin, WMax    float64 // 0 < WMin <= WMax < 1; the paper: 0.1/N or 1/128, and 0.5
	RateUnitBps   uint32  // what RecRate counts, as tc.NPOptions have it; 0: 1 Mbit/s
	DilationShift uint32  // the kernel's clock runs 2^shift slower than the papers'; 0 on a real host
	MaxFlows      uint32  // size of the flow table; 0: 65536

	// Feedback says what the rate goes by; "": FeedbackCNP. The others need TNs, and have a CongestedShare.
	Feedback       Feedback
	TNs            uint64  // T, as the receivers' notification points have it
	CongestedShare float64 // 0: 0.95
}

// Feedback is what PCN's sender hears of congestion by.
type Feedback string

const (
	FeedbackCNP  Feedback = "cnp"  // CNPs only: the paper's
	FeedbackACK  Feedback = "ack"  // what ACKs tell of marks, for receivers that send no CNPs
	FeedbackAuto Feedback = "auto" // ACKs while no CNPs come
)

// feedbacks are as bpf/algo/pcn.h has them.
var feedbacks = map[Feedback]uint32{"": 0, FeedbackCNP: 0, FeedbackACK: 1, FeedbackAuto: 2}

func (o PCNOptions) checkFeedback() error {
	if _, ok := feedbacks[o.Feedback]; !ok {
		return fmt.Errorf("feedback %q: want %q, %q or %q", o.Feedback, FeedbackCNP, FeedbackACK, FeedbackAuto)
	}
	if feedbacks[o.Feedback] != 0 && o.TNs == 0 {
		return fmt.Errorf("feedback %q without T: set it to the longest round trip", o.Feedback)
	}
	if !(o.CongestedShare >= 0 && o.CongestedShare < 1) {
		return fmt.Errorf("congested share %g: want 0 <= share < 1", o.CongestedShare)
	}
	return nil
}

func (o PCNOptions) check() error {
	if err := checkRate(o.LineRateBps, o.DilationShift); err != nil {
		return err
	}
	if !(o.WMin > 0 && o.WMin <= o.WMax && o.WMax < 1) {
		return fmt.Errorf("w_min %g, w_max %g: want 0 < w_min <= w_max < 1", o.WMin, o.WMax)
	}
	if o.MinRateBps > o.LineRateBps {
		return fmt.Errorf("minimum rate %d bit/s is above the line rate %d bit/s", o.MinRateBps, o.LineRateBps)
	}
	return o.checkFeedback()
}

func checkRate(lineRateBps uint64, shift uint32) error {
	if lineRateBps < 1 || lineRateBps > MaxRateBps {
		return fmt.Errorf("line rate %d bit/s: want 1 bit/s to 800 Gbit/s", lineRateBps)
	}
	if shift > MaxDilationShift {
		return fmt.Errorf("dilation shift %d: want 0 to %d", shift, MaxDilationShift)
	}
	return nil
}

// RegisterPCN registers congestion control "pcn" (bpf/cc/pcn.bpf.c).
func RegisterPCN(o PCNOptions, options ...Option) (*Control, error) {
	if o.MinRateBps == 0 {
		o.MinRateBps = min(MinSendRateBps, o.LineRateBps)
	}
	if o.CongestedShare == 0 {
		o.CongestedShare = 0.95
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("pcn: %w", err)
	}
	spec, err := loadPcn()
	if err != nil {
		return nil, err
	}
	params := struct {
		LineRateBps, MinRateBps uint64
		WMin, WMax              uint32
	}{o.LineRateBps, o.MinRateBps, q24(o.WMin), q24(o.WMax)}
	windows := struct {
		TNs               uint64
		CongestedPermille uint32
		Pad               uint32
	}{o.TNs, uint32(math.Round(o.CongestedShare * 1000)), 0}
	return register(spec, definition{
		name: "pcn", rateUnitBps: o.RateUnitBps, params: params, vars: map[string]any{pcnVarFeedback: feedbacks[o.Feedback], pcnVarNpParams: windows}, table: pcnTable, maxFlows: o.MaxFlows, shift: o.DilationShift,
		limits: limits{o.MinRateBps, o.LineRateBps},
	}, options)
}

// RegisterLine registers congestion control "pcn_line": line rate, or the socket's SO_MAX_PACING_RATE, whatever
// happens (bpf/cc/line.bpf.c).
func RegisterLine(lineRateBps uint64, dilationShift uint32, options ...Option) (*Control, error) {
	if err := checkRate(lineRateBps, dilationShift); err != nil {
		return nil, fmt.Errorf("pcn_line: %w", err)
	}
	spec, err := loadLine()
	if err != nil {
		return nil, err
	}
	return register(spec, definition{
		name: "pcn_line", vars: map[string]any{lineVarLineRateBps: lineRateBps}, shift: dilationShift,
	}, options)
}

// definition is what makes a control of an object.
type definition struct {
	name string
	tcd  bool // it goes by TCD's marks; its name gets tcdSuffix

	rateUnitBps uint32 // of PCN's RecRate, if it is not the paper's
	params      any    // variable params; nil: it has none
	vars        map[string]any
	table       flowTable // nil: it keeps none
	maxFlows    uint32    // 0: as the object has it
	shift       uint32
	limits      limits

	reuse        *ebpf.Map // a flow table; nil: its own
	unregistered bool
}

// The names that every object has (bpf/include/rate_control.h).
const (
	opsMap    = OperationsMap
	flowsMap  = "flows"
	paramsVar = "params"
	shiftVar  = "dilation_shift"
)

// register loads the object and registers its one struct_ops instance.
func register(spec *ebpf.CollectionSpec, d definition, options []Option) (*Control, error) {
	for _, option := range options {
		option(&d)
	}
	if d.tcd {
		d.name += tcdSuffix
		if err := setOps(spec, d.name, flagNeedsECN); err != nil {
			return nil, fmt.Errorf("congestion control %s: %w", d.name, err)
		}
	}
	c, err := load(spec, d)
	if err != nil || d.unregistered {
		return c, err
	}
	if err := c.Register(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func load(spec *ebpf.CollectionSpec, d definition) (*Control, error) {
	vars := map[string]any{shiftVar: d.shift}
	maps.Copy(vars, d.vars)
	if d.params != nil {
		vars[paramsVar] = d.params
	}
	for v, value := range vars {
		if err := spec.Variables[v].Set(value); err != nil {
			return nil, fmt.Errorf("congestion control %s: set %s: %w", d.name, v, err)
		}
	}
	if d.maxFlows != 0 {
		spec.Maps[flowsMap].MaxEntries = d.maxFlows
	}
	if err := chooseCongControl(spec); err != nil {
		return nil, fmt.Errorf("congestion control %s: %w", d.name, err)
	}
	linkless := HaveStructOpsLink() != nil
	if linkless {
		spec.Maps[opsMap].Flags &^= unix.BPF_F_LINK
	}
	replace := map[string]*ebpf.Map{}
	if d.reuse != nil && spec.Maps[flowsMap] != nil && spec.Maps[flowsMap].Compatible(d.reuse) == nil {
		replace[flowsMap] = d.reuse
	}
	fingerprint := Fingerprint(spec)
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: replace})
	if linkless && errors.Is(err, unix.EEXIST) {
		return nil, notRegistered(d.name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("load congestion control %s: %w", d.name, explain(err, HaveTCPStructOps))
	}
	return &Control{
		name: d.name, tcd: d.tcd, rateUnitBps: d.rateUnitBps, coll: coll, linkless: linkless, params: d.params, table: d.table, flows: coll.Maps[flowsMap], limits: d.limits,
		fingerprint: fingerprint,
	}, nil
}

// Register registers a control that is only loaded. Before 6.4 there are no links: loading has registered it already.
func (c *Control) Register() error {
	if c.linkless {
		return nil
	}
	l, err := link.AttachStructOps(link.StructOpsOptions{Map: c.coll.Maps[opsMap]})
	if err != nil {
		return notRegistered(c.name, explain(err, HaveTCPStructOps))
	}
	c.link = l
	return nil
}

func notRegistered(name string, err error) error {
	return fmt.Errorf("register congestion control %s (is the name taken? see net.ipv4.tcp_available_congestion_control): %w", name, err)
}

// chooseCongControl keeps the cong_control program of the running kernel: 4 arguments from 6.10 on, 2 before.
func chooseCongControl(spec *ebpf.CollectionSpec) error {
	const four, two = "control_cong_control", "control_cong_control_2"
	if spec.Programs[four] == nil {
		return nil // it has none: DCTCP leaves the window to the core
	}
	kernel, err := readKernelTypes()
	if err != nil {
		return HaveBTF()
	}
	if kernel.congControlArgs == 0 {
		return fmt.Errorf("find tcp_congestion_ops.cong_control in the kernel's types: %w", ErrNotSupported)
	}
	if kernel.congControlArgs == 4 {
		delete(spec.Programs, two)
		return nil
	}
	spec.Programs[two].AttachTo = spec.Programs[four].AttachTo
	delete(spec.Programs, four)
	return nil
}
