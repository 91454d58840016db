// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tetratelabs/wazero"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/gate"
	"github.com/pcn-linux/pcn/netns-lab/network"
)

// world is a run: a network with its traffic, and the time.
type world struct {
	plan   *plan
	scheme scheme.Scheme
	setup  scheme.Setup

	now     int64
	t0, end int64 // t = 0, and the end of the measured time
	events  eventQueue
	packets slab
	ports   []port
	nodes   []node
	flows   []flow
	streams int         // flows that the scheme controls; bursts' flows follow
	gates   *gate.Gates // of controlled flows
	changes []linkChange

	// Where paths are not fixed, because links fail or packets are spread:
	unfixed bool
	routes  *network.Routes
	down    map[int]bool // links
	spray   bool         // each packet takes a path at random
	paths   *rand.Rand   // chooses it
	errors  *rand.Rand   // chooses packets that links lose; nil: none lose any

	pauseTime, pauseRepeat int64 // 0: a PAUSE holds until the RESUME, and is not repeated
	repeatPairs            bool  // PAUSE is repeated by a timer of each pair of ports
	leavesBy               int32 // the port by which the packet leaves that account counts
	mmu                    bool  // parts of switches' buffers are not shared
	reserve, xonOffset     uint64

	// RoCE's transport:
	relays      bool // hosts forward what is for others
	goBackN     bool
	goBackZero  bool   // and to the flow's first packet
	flightBytes uint64 // of each flow at most; 0: any, or what its host sends in flightNs
	flightNs    uint64
	scaleFlight bool // by its rate

	// How receivers answer:
	acksAsData, cnpsAsData bool // in switches
	cnpsOnACKs             bool
	ackBytes               uint32

	linkLosses uint64 // packets lost on links, and for want of a path

	steps []int32 // ports of all fixed paths, one path behind the other
	ahead ahead

	core      *core
	control   *control          // nil if nothing controls senders
	senders   map[uint64]sender // by line rate of hosts
	notifier  *notifier         // nil if receivers answer nothing
	telemetry *telemetry        // nil if switches write none

	ranks                 ranks
	limitBytes            uint64
	wredBytes             uint64
	calmBytes             uint64 // an ingress port that holds no more is let alone
	minTimeoutNs          int64
	lossless, cbfc, watch bool
	dropFirstRTT          bool
	delayedACK            bool
	latchECE              bool // receivers echo marks as RFC 3168 does
	draining              bool // the measured time is over

	trace  func(*PacketEvent) // gets what happens to packets; nil if nobody asks
	record recorder
}

// Retransmission timeouts: above the longest pause, or in a lossy network above the longest gap
// between two packets.
const (
	minTimeoutNs      = 30_000_000
	minTimeoutLossyNs = 10_000_000
)

// newWorld builds the network of a scheme's run.
func newWorld(
	ctx context.Context, runtime wazero.Runtime, e *experiment.Experiment, name string,
) (_ *world, err error) {
	defer catch(&err)
	s, err := e.Scheme(name)
	if err != nil {
		return nil, err
	}
	if s.Object == nil {
		return nil, fmt.Errorf("scheme %s is Linux's own and not in the simulator: run it with "+
			"`--engine kernel`, or simulate one of the others", name)
	}
	p, err := newPlan(e)
	if err != nil {
		return nil, err
	}
	sw := e.Switch
	w := &world{
		plan: p, scheme: s, setup: e.Setup(s), packets: newSlab(),
		limitBytes: uint64(sw.PortBuffer),
		lossless:   e.PFCOn(name),
		cbfc:       sw.FlowControl == experiment.FlowCBFC, watch: sw.Detectors,
		minTimeoutNs: minTimeoutNs,
	}
	w.delayedACK = w.setup.DelayedACK || e.AckEvery == 2
	w.latchECE = w.setup.CountsACKs && !w.setup.AccECN
	if !w.lossless {
		w.minTimeoutNs = minTimeoutLossyNs
		w.dropFirstRTT = w.setup.DropFirstRTT
	}
	w.ranks = newRanks(e.DataClasses())
	w.setTransport()
	w.setTime()
	if err := errors.Join(w.loadGuarded(ctx, runtime), w.checkRoundTrip()); err != nil {
		return nil, err
	}
	if err := w.addPorts(); err != nil {
		return nil, err
	}
	w.setErrors()
	w.setBuffers()
	if err := w.addFlows(); err != nil {
		return nil, err
	}
	if err := errors.Join(w.checkPaths(), w.checkHops(), w.checkRelays()); err != nil {
		return nil, err
	}
	w.record.begin(w)
	w.schedule()
	return w, nil
}

// maxRTTNs is the longest round trip of a control: TCP's smoothed one, in eighths of a us of the
// kernel's clock, has 32 bits.
const maxRTTNs = 400_000_000

// checkRoundTrip fails for round trips that are too long, and leaves no timeout shorter than two.
func (w *world) checkRoundTrip() error {
	rttNs := w.plan.pathRTTNs(w.fullFrame())
	if w.control != nil && rttNs > maxRTTNs {
		return fmt.Errorf("the longest round trip is %s, want at most %s: shorten delays",
			experiment.Duration(rttNs), experiment.Duration(maxRTTNs))
	}
	w.minTimeoutNs = max(w.minTimeoutNs, 2*int64(rttNs))
	return nil
}

// checkRelays fails for links that fail where hosts forward: what waits at a host is moved to its
// other links, which is for packets of its own.
func (w *world) checkRelays() error {
	if w.relays && w.plan.exp.LinkStates() {
		return errors.New("links can't fail where hosts forward: remove \"state\" from \"links\"")
	}
	return nil
}

// setTransport sets what is not as on Linux.
func (w *world) setTransport() {
	e := w.plan.exp
	w.spray = e.Switch.ECMP == experiment.ECMPPacket
	w.relays = w.plan.routes.Relay()
	w.unfixed = w.spray || e.LinkStates()
	if w.unfixed {
		w.routes = w.plan.routes
		w.paths = rand.New(rand.NewPCG(e.Seed, 3))
	}
	w.pauseTime = int64(e.Switch.PFC.PauseTime)
	w.pauseRepeat = int64(e.Switch.PFC.PauseRepeat)
	w.repeatPairs = e.Switch.PFC.RepeatPairs
	t := e.Transport
	w.acksAsData, w.cnpsAsData = t.Acks == experiment.ReplyData, t.CNP == experiment.ReplyData
	w.cnpsOnACKs, w.ackBytes = t.CNP == experiment.ReplyOnACK, uint32(t.AckSize)
	w.goBackZero = t.Recovery == experiment.RecoveryGoBack0
	w.goBackN = t.Recovery == experiment.RecoveryGoBackN || w.goBackZero
	w.scaleFlight = t.ScaleWindow
	w.flightBytes = uint64(t.Window.Bytes)
	if t.Window.BDP {
		w.flightBytes = w.plan.bdpBytes(uint64(e.Frame))
	}
}

// flightOf returns how much a flow of a host with this line rate may have under way.
func (w *world) flightOf(lineRate uint64) uint64 {
	if w.flightNs != 0 {
		return bytesIn(w.flightNs, lineRate)
	}
	return w.flightBytes
}

// earliestNs is when the clock begins, at the earliest: 0 means never to some algorithms.
const earliestNs = 1_000_000_000

// setTime chooses t = 0, on a bin of the series.
func (w *world) setTime() {
	e := w.plan.exp
	bin := int64(e.Sample)
	begin := (earliestNs + bin - 1) / bin * bin
	w.now = begin
	w.t0 = begin + int64(e.Warmup)
	w.end = w.t0 + int64(e.Duration)
}

// sinceStart converts a time to one counted from t = 0.
func (w *world) sinceStart(at int64) int64 { return at - w.t0 }

// loadGuarded is loadAlgorithms, with a watchdog for the calls of a scheme of the user's own.
func (w *world) loadGuarded(ctx context.Context, runtime wazero.Runtime) error {
	if w.scheme.Own == nil {
		return w.loadAlgorithms(ctx, runtime)
	}
	dog, err := newWatchdog(ctx, runtime)
	if err != nil {
		return err
	}
	if err := w.loadAlgorithms(ctx, runtime); err != nil {
		return err
	}
	w.core.dog = dog
	if w.control != nil {
		w.control.dog = dog
	}
	if w.notifier != nil {
		w.notifier.dog = dog
	}
	return nil
}

// loadAlgorithms instantiates the control, the notification point and the core of ports.
func (w *world) loadAlgorithms(ctx context.Context, runtime wazero.Runtime) error {
	e, n := w.plan.exp, w.plan.exp.SenderNetwork(w.plan.baseRTTNs())
	markingValues := e.MarkingValues(w.scheme)
	if w.scheme.Sender != scheme.SenderLine {
		n.PathRTTNs = w.plan.pathRTTNs(w.fullFrame())
		if err := w.loadControl(ctx, runtime, n); err != nil {
			return err
		}
		if err := w.setTelemetry(); err != nil {
			return err
		}
	}
	if name := w.setup.Notification; name != scheme.None {
		params, err := markingValues.Bytes(scheme.NotificationVariable, n, w.scheme.TCD)
		if err != nil {
			return err
		}
		code, err := notificationCode(w.scheme, name)
		if err != nil {
			return err
		}
		w.notifier, err = newNotifier(ctx, runtime, "notification", code, params, w.scheme.TCD)
		if err != nil {
			return err
		}
	}
	m := marking{rule: w.setup.Marker}
	if markingValues != nil {
		var err error
		// FECN's parameters are the experiment's own
		if m.params, err = markingValues.Bytes(scheme.MarkerVariable, n, w.scheme.TCD); err != nil {
			return err
		}
	}
	if m.rule == scheme.None || m.rule == "npecn" || m.rule == "fecn" {
		m.params = nil
	}
	if w.dropFirstRTT {
		w.wredBytes = max(uint64(e.Values(w.scheme).Get("wred_k").Number), 1)
	}
	var err error
	if m.own, err = ownPortCode(w.scheme, m.rule); err != nil {
		return err
	}
	w.core, err = newCore(ctx, runtime, w.coreParams(m))
	if err != nil {
		return err
	}
	return nil
}

func (w *world) loadControl(
	ctx context.Context, runtime wazero.Runtime, n scheme.Network,
) error {
	w.senders = map[uint64]sender{}
	for _, f := range w.plan.exp.Flows {
		rate := uint64(w.plan.exp.HostRate(f.From))
		if _, ok := w.senders[rate]; ok {
			continue
		}
		n.LineRateBps = rate
		s, err := w.newSender(n)
		if err != nil {
			return err
		}
		w.senders[rate] = s
	}
	code, err := controlCode(w.scheme)
	if err != nil {
		return err
	}
	w.control, err = newControl(ctx, runtime, w.scheme, code, w.senders, w.plan.seed32())
	return err
}

// sender is the control of hosts with one line rate.
type sender struct {
	values    *scheme.Values
	variables map[string][]byte
}

// newSender resolves the control's parameters for hosts in a network.
func (w *world) newSender(n scheme.Network) (sender, error) {
	object := w.scheme.Object
	values, problems := object.Resolve(w.plan.exp.Settings(w.scheme), n)
	for _, p := range problems { // the experiment was checked; the path's delay was not known
		return sender{}, fmt.Errorf("scheme %s: %s: %s", w.scheme.Name, p.Key, p.Msg)
	}
	variables := map[string][]byte{}
	for _, name := range object.Variables() {
		value, err := values.Bytes(name, n, w.scheme.TCD)
		if err != nil {
			return sender{}, err
		}
		variables[name] = value
	}
	return sender{values, variables}, nil
}

// coreParams returns the parameters of switch ports.
func (w *world) coreParams(m marking) *coreParams {
	e := w.plan.exp
	sw := e.Switch
	p := &coreParams{
		marking: m, tcd: w.scheme.TCD, watch: w.watch,
		fecn: fecnParams{
			thresholdBytes: uint64(e.FECN.Threshold), packetBytes: uint32(e.FECN.PacketSize),
			rate: uint32(e.FECN.MarkingRate), victims: e.FECN.Victims,
		},
		xoffBytes:      uint64(sw.PFC.XOFF),
		xonOffsetBytes: uint64(sw.PFC.XOFF - sw.PFC.XON),
	}
	if d := sw.PFC.Dynamic; d != nil {
		p.alpha, p.xonOffsetBytes = float64(d.Alpha), uint64(d.XONOffset)
	}
	if w.cbfc {
		p.creditBytes, p.creditPeriodNs = uint64(sw.CBFC.Buffer), uint64(sw.CBFC.Period)
	}
	if w.watch || w.scheme.TCD {
		p.maxTonNs = uint64(e.MaxTon())
		p.ecnBytes, p.overBytes = uint64(e.ECNThreshold()), uint64(e.ECNThreshold())
		if w.cbfc {
			p.overBytes = uint64(e.FECN.Threshold)
		}
	}
	return p
}

// addPorts builds the nodes and their ports.
func (w *world) addPorts() error {
	p := w.plan
	w.nodes = make([]node, len(p.nodeNames))
	for i := range w.nodes {
		n := &w.nodes[i]
		n.isHost, n.own = p.isHost(int32(i)), p.exp.Switch.OwnOf(p.nodeNames[i])
		n.bufferBytes = cmp.Or(uint64(n.own.Buffer), uint64(p.exp.Switch.Buffer))
	}
	w.calmBytes = math.MaxUint64
	w.ports = make([]port, len(p.ends))
	rests := make([]portRest, len(p.ends))
	data := p.exp.DataClasses()
	for i, c := range data {
		data[i] = w.ranks.of[c]
	}
	for id := range w.ports {
		q, link := &w.ports[id], p.network.Links[id/2]
		*q = port{
			node: p.ends[id][0], peer: p.ends[id][1], back: int32(id ^ 1),
			rate: link.RateBps, delay: int64(link.DelayNs), wire: newList(),
			portRest: &rests[id],
		}
		q.fromHost = p.isHost(q.node)
		q.credits = w.cbfc && !p.isHost(q.peer)
		for c := range q.queues {
			q.queues[c] = queue{fifo: fifo{list: newList()}, queueRest: &q.classes[c]}
		}
		if err := w.addClasses(int32(id), q, data); err != nil {
			return err
		}
	}
	return nil
}

// addClasses gives the classes of data their states in the core.
func (w *world) addClasses(id int32, p *port, data []uint8) error {
	if p.fromHost && !p.credits {
		for _, c := range data {
			p.queues[c].lossless = w.lossless
		}
		return nil
	}
	var err error
	// port ids of the kernel's engine start at 1, and seeds of ports go by them
	if p.core, err = w.core.newPort(w.plan.seed32()+uint32(id)+1, p.rate); err != nil {
		return err
	}
	w.setMarking(p)
	for _, c := range data {
		q := &p.queues[c]
		q.lossless, q.marked = w.lossless, !p.fromHost
		if q.core, q.ingress, err = w.core.newClass(); err != nil {
			return err
		}
		w.setIngress(q, p.rate, &w.nodes[p.node])
		if err := w.setPairs(q, id); err != nil {
			return err
		}
	}
	return nil
}

// setPairs gives a switch's queue a timer for each other port, if PAUSE is repeated by pairs.
func (w *world) setPairs(q *queue, id int32) error {
	if !w.repeatPairs || !q.lossless || w.plan.isHost(w.plan.ends[id][0]) {
		return nil
	}
	for out := range w.ports {
		if int32(out) == id || w.plan.ends[out][0] != w.plan.ends[id][0] {
			continue
		}
		timer, err := w.core.newTimer(q.ingress)
		if err != nil {
			return err
		}
		q.pairs = append(q.pairs, portPair{int32(out), timer})
	}
	return nil
}

// setMarking gives a switch port the thresholds of its rate.
func (w *world) setMarking(p *port) {
	e := w.plan.exp
	if w.dropFirstRTT {
		p.wredBytes = e.WREDAt(w.wredBytes, p.rate)
	}
	if m, ok := e.MarkingAt(w.scheme.Name, p.rate); ok && e.Switch.MarkingByRate {
		w.core.setMarking(p.core, uint64(m.KMin), uint64(m.KMax))
	}
	if kmin, kmax, ok := e.OwnMarkingAt(w.nodes[p.node].own, p.rate); ok {
		w.core.setMarking(p.core, uint64(kmin), uint64(kmax))
	}
}

// setIngress gives an ingress port and class the thresholds of its link's rate and of its node.
func (w *world) setIngress(q *queue, rate uint64, n *node) {
	e := w.plan.exp
	if d := e.Switch.DynamicOf(n.own); d != nil {
		w.core.setAlpha(q.ingress, float64(d.AlphaAt(rate, e.Topology.Rate)))
		w.calmBytes = 0
		return
	}
	if n.own.XOFF != 0 {
		w.core.setXOFF(q.ingress, uint64(n.own.XOFF))
	}
	w.calmBytes = min(w.calmBytes, w.core.xonBytes(q.ingress, n.bufferBytes))
}

// schedule pushes what happens by itself.
func (w *world) schedule() {
	e := w.plan.exp
	rng := w.plan.rng()
	w.events.begin(w.now, w.longestHop())
	for i := range w.flows {
		f := &w.flows[i]
		if i < w.streams && e.Flows[i].StartJitter > 0 {
			f.start += int64(rng.Uint64N(uint64(e.Flows[i].StartJitter)))
		}
		w.events.push(f.start, evStart, uint32(i))
	}
	w.changes = w.plan.linkChanges()
	for i, c := range w.changes {
		w.events.push(max(w.t0+c.at, w.now), evRate, uint32(i))
	}
	w.events.push(w.now+int64(e.Sample), evBin, 0)
	w.events.push(w.now+watchNs, evWatch, 0)
	w.events.push(w.end, evEnd, 0)
}

// longestHop returns the longest time that a full frame takes to cross a link.
func (w *world) longestHop() int64 {
	var longest int64
	for i := range w.ports {
		p := &w.ports[i]
		frame := uint64(w.plan.exp.Frame) * 8_000_000_000 / p.rate
		longest = max(longest, p.delay+int64(frame))
	}
	return longest
}

// run lets all events happen, up to the end and until no packet is under way.
func (w *world) run(ctx context.Context, progress func(done float64)) (err error) {
	defer catch(&err)
	begin := w.now
	told := begin
	for {
		if w.events.done == w.ahead.until || w.events.empty() {
			w.readAhead()
		}
		e, ok := w.events.pop()
		if !ok {
			return nil
		}
		w.now = e.at
		w.happen(&e)
		if w.now-told >= watchNs {
			told = w.now
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(min(float64(w.now-begin)/float64(w.end-begin), 1))
		}
		if w.draining && w.now > w.end+drainNs {
			return nil
		}
	}
}

// drainNs is how long packets under way may take to arrive when the senders have stopped.
const drainNs = 50_000_000

// happen handles an event.
func (w *world) happen(e *event) {
	switch e.kind() {
	case evArrive:
		w.arrive(int32(e.arg))
	case evDecide:
		w.decide(int32(e.arg))
	case evWake:
		w.wake(&w.flows[e.arg])
	case evLink:
		w.linkEvent(e.arg)
	case evStart:
		w.begin(&w.flows[e.arg])
	case evRelease:
		w.release(int(e.arg))
	case evAck:
		w.ackDue(&w.flows[e.arg])
	case evWindow:
		w.windowDue(&w.flows[e.arg])
	case evTimeout:
		w.timeout(&w.flows[e.arg])
	case evRepeat:
		w.repeat(e.arg)
	case evRate:
		w.changeLink(w.changes[e.arg])
	case evBin:
		w.record.endBin(w)
	case evWatch:
		w.watchDeadlock()
	case evEnd:
		w.finish()
	}
}

// finish ends the measured time: what was counted of flows is kept, and senders stop. Bursts do
// not: as on Linux, their packets have been in their hosts' ports all the time.
func (w *world) finish() {
	w.neverStarted()
	w.record.snapshot(w)
	w.draining = true
	for i := range w.flows[:w.streams] {
		w.flows[i].stopped = true
	}
}
