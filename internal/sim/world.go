// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

// clock is the time of a run, and what is to happen.
type clock struct {
	now      int64
	t0, end  int64 // t = 0, and the end of the measured time
	draining bool  // the measured time is over
	events   eventQueue
}

// sinceStart converts a time to one counted from t = 0.
func (c *clock) sinceStart(at int64) int64 { return at - c.t0 }

// world is a run: the time, a network, and its hosts' transport.
type world struct {
	clock
	plan      *plan
	packets   slab
	ports     []port
	nodes     []node
	turns     []uint32 // by port: of its last packet, among all that came to the other end
	changes   []linkChange
	transport transport

	// Where paths are not fixed, because links fail or packets are spread:
	unfixed bool
	routes  *network.Routes
	down    map[int]bool // links
	spray   bool         // each packet takes a path at random
	paths   *rand.Rand   // chooses it
	errors  *rand.Rand   // chooses packets that links lose; nil: none lose any
	jitter  *rand.Rand   // of links; nil: none has any

	pauseTime, pauseRepeat int64 // 0: a PAUSE holds until the RESUME, and is not repeated
	repeatPairs            bool  // PAUSE is repeated by a timer of each pair of ports
	leavesBy               int32 // the port by which the packet leaves that account counts
	mmu                    bool  // parts of switches' buffers are not shared
	reserve, xonOffset     uint64

	relays                 bool // hosts forward what is for others
	acksAsData, cnpsAsData bool // in switches

	linkLosses uint64 // packets lost on links, and for want of a path

	ahead ahead

	core *core

	part      *part  // nil if the run has one part
	undivided string // why it has one, if more were asked for

	pfcDog *pfcWatchdog // nil if there is none

	ranks                 ranks
	limitBytes            uint64
	wredBytes             uint64 // 0: none; see port.wredBytes
	calmBytes             uint64 // an ingress port that holds no more is let alone,
	calmUsed              uint64 // while its switch holds no more than this
	lossless, cbfc, watch bool
	noise                 *noise // nil if hosts see at once what arrives

	trace       func(*PacketEvent) // gets what happens to packets; nil if nobody asks
	record      recorder
	checkpoints *Checkpoints // nil: none are written
}

// newWorlds builds the network of a scheme's run, as a part for each thread or fewer, each with a
// runtime of its own. It returns the first.
func newWorlds(
	ctx context.Context, newRuntime func() runtime, e *experiment.Experiment, name string,
	o Options,
) (_ *world, err error) {
	defer catch(&err)
	p, err := newPlan(e, name)
	if err != nil {
		return nil, err
	}
	sw := e.Switch
	w := &world{
		plan: p, packets: newSlab(), ranks: newRanks(e.DataClasses()),
		limitBytes: uint64(sw.PortBuffer),
		lossless:   e.PFCOn(name),
		cbfc:       sw.FlowControl == experiment.FlowCBFC, watch: sw.Detectors,
	}
	w.noise = newNoise(e, len(p.ends))
	w.setNetwork()
	w.setTransport()
	w.setTime()
	err = errors.Join(w.loadGuarded(ctx, newRuntime()), w.transport.checkRoundTrip())
	if err != nil {
		return nil, err
	}
	if o.Threads > 1 {
		if err := w.divide(ctx, newRuntime, o); err != nil {
			return nil, err
		}
	}
	if err := w.addPorts(); err != nil {
		return nil, err
	}
	w.ahead.off = len(w.ports) < fewPorts || w.unfixed
	w.setErrors()
	w.setBuffers()
	w.pfcDog = newPFCWatchdog(w)
	if err := w.transport.addFlows(); err != nil {
		return nil, err
	}
	w.reserveStates()
	if err := errors.Join(w.checkPaths(), w.transport.checkHops(), w.checkRelays()); err != nil {
		return nil, err
	}
	w.record.begin(w)
	w.setRetiring()
	w.share()
	w.schedule()
	return w, nil
}

// checkRelays fails for links that fail where hosts forward: what waits at a host is moved to its
// other links, which is for packets of its own.
func (w *world) checkRelays() error {
	if w.relays && w.plan.exp.LinkStates() {
		return errors.New("links can't fail where hosts forward: remove \"state\" from \"links\"")
	}
	return nil
}

// setNetwork sets what of the network is not as on Linux.
func (w *world) setNetwork() {
	e := w.plan.exp
	w.spray = e.Switch.ECMP == experiment.ECMPPacket
	w.relays = w.plan.routes.Relay()
	w.unfixed = w.spray || e.LinkStates()
	if w.unfixed {
		w.routes = w.plan.routes
		w.paths = rand.New(rand.NewPCG(e.Seed, 3))
	}
	w.changes = append(w.plan.linkChanges(), w.plan.stormChanges(w.ranks)...)
	w.pauseTime = int64(e.Switch.PFC.PauseTime)
	w.pauseRepeat = int64(e.Switch.PFC.PauseRepeat)
	w.repeatPairs = e.Switch.PFC.RepeatPairs
	t := e.Transport
	w.acksAsData, w.cnpsAsData = t.Acks == experiment.ReplyData, t.CNP == experiment.ReplyData
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

// loadGuarded is loadAlgorithms, with a watchdog for the calls of a scheme of the user's own.
func (w *world) loadGuarded(ctx context.Context, r runtime) error {
	if w.plan.scheme.Own == nil {
		return w.loadAlgorithms(ctx, r)
	}
	dog, err := newWatchdog(ctx, r)
	if err != nil {
		return err
	}
	if err := w.loadAlgorithms(ctx, r); err != nil {
		return err
	}
	w.core.dog = dog
	if c := w.transport.control; c != nil {
		c.dog = dog
	}
	if n := w.transport.notifier; n != nil {
		n.dog = dog
	}
	return nil
}

// loadAlgorithms instantiates the control, the notification point and the core of ports.
func (w *world) loadAlgorithms(ctx context.Context, r runtime) error {
	e, s := w.plan.exp, w.plan.scheme
	n, values := e.SenderNetwork(e.BaseRTTNs(w.plan.routes)), e.MarkingValues(s)
	if err := w.transport.load(ctx, r, n, values); err != nil {
		return err
	}
	m := marking{rule: w.plan.setup.Marker}
	var err error
	// FECN's parameters are the experiment's own
	if values != nil && m.rule != scheme.None && m.rule != "npecn" && m.rule != "fecn" {
		if m.params, err = values.Bytes(scheme.MarkerVariable, n, s.TCD); err != nil {
			return err
		}
	}
	if w.transport.dropFirstRTT {
		w.wredBytes = max(uint64(e.Values(s).Get("wred_k").Number), 1)
	}
	if m.own, err = ownPortCode(s, m.rule); err != nil {
		return err
	}
	w.core, err = newCore(ctx, r, w.coreParams(m))
	return err
}

// coreParams returns the parameters of switch ports.
func (w *world) coreParams(m marking) *coreParams {
	e := w.plan.exp
	sw := e.Switch
	p := &coreParams{
		marking: m, tcd: w.plan.scheme.TCD, watch: w.watch,
		fecn: fecnParams{
			thresholdBytes: uint64(e.FECN.Threshold), packetBytes: uint32(e.FECN.PacketSize),
			rate: uint32(e.FECN.MarkingRate), victims: e.FECN.Victims,
		},
		xoffBytes:      uint64(sw.PFC.XOFF),
		xonOffsetBytes: uint64(sw.PFC.XOFF - sw.PFC.XON),
		watchdog:       sw.PFC.Watchdog,
	}
	if d := sw.PFC.Dynamic; d != nil {
		p.alpha, p.xonOffsetBytes = float64(d.Alpha), uint64(d.XONOffset)
	}
	if w.cbfc {
		p.creditBytes, p.creditPeriodNs = uint64(sw.CBFC.Buffer), uint64(sw.CBFC.Period)
	}
	if w.watch || w.plan.scheme.TCD {
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
		own := p.exp.Switch.OwnOf(p.nodeNames[i])
		n.isHost, n.own = p.isHost(int32(i)), &own
		n.bufferBytes = cmp.Or(uint64(n.own.Buffer), uint64(p.exp.Switch.Buffer))
	}
	w.calmBytes, w.calmUsed = math.MaxUint64, math.MaxUint64
	w.turns = make([]uint32, len(p.ends))
	w.ports = makeHuge[port](len(p.ends), len(p.ends))
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
			p.queues[c].lossless = w.losslessClass(c)
		}
		return nil
	}
	var err error
	core := w.home(p.node).core
	// port ids of the kernel's engine start at 1, and seeds of ports go by them
	if p.core, err = core.newPort(w.plan.seed32()+uint32(id)+1, p.rate); err != nil {
		return err
	}
	w.setMarking(p)
	w.setClasses(p)
	for _, c := range data {
		q := &p.queues[c]
		q.lossless, q.marked = w.losslessClass(c), !p.fromHost
		if q.core, q.ingress, err = core.newClass(); err != nil {
			return err
		}
		if q.marked {
			q.calmBytes = core.calmBytes(p.core)
		}
		w.setIngress(q, p)
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
		timer, err := w.home(w.plan.ends[id][0]).core.newTimer(q.ingress)
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
	core := w.home(p.node).core
	if w.wredBytes != 0 {
		p.wredBytes = e.WREDAt(w.wredBytes, p.rate)
	}
	if m, ok := e.MarkingAt(w.plan.scheme.Name, p.rate); ok && e.Switch.MarkingByRate {
		core.setMarking(p.core, uint64(m.KMin), uint64(m.KMax))
	}
	if kmin, kmax, ok := e.OwnMarkingAt(*w.nodes[p.node].own, p.rate); ok {
		core.setMarking(p.core, uint64(kmin), uint64(kmax))
	}
}

// setIngress gives an ingress port and class the thresholds of its link's rate and of its node.
func (w *world) setIngress(q *queue, p *port) {
	e, n, core := w.plan.exp, &w.nodes[p.node], w.home(p.node).core
	if d := e.Switch.DynamicOf(*n.own); d != nil {
		core.setAlpha(q.ingress, float64(d.AlphaAt(p.rate, e.Topology.Rate)))
		// the fuller the buffer, the lower the threshold
		w.calmUsed = min(w.calmUsed, n.bufferBytes/2)
	} else if n.own.XOFF != 0 {
		core.setXOFF(q.ingress, uint64(n.own.XOFF))
	}
	w.calmBytes = min(w.calmBytes, core.xonBytes(q.ingress, n.bufferBytes-n.bufferBytes/2))
}

// schedule pushes what happens by itself.
func (w *world) schedule() {
	e := w.plan.exp
	rng := w.plan.rng()
	for _, x := range w.worlds() {
		x.events.begin(w.now, w.longestHop())
	}
	for i := range w.transport.flows {
		f := &w.transport.flows[i]
		if i < w.transport.streams && e.Flows[i].StartJitter > 0 {
			f.start += int64(rng.Uint64N(uint64(e.Flows[i].StartJitter)))
		}
		w.home(f.key.src).events.push(f.start, evStart, uint32(i))
	}
	for i, c := range w.changes {
		node := int32(0)
		if c.port != none {
			node = w.ports[c.port].node
		}
		w.home(node).events.push(max(w.t0+c.at, w.now), evRate, uint32(i))
	}
	w.pushWhole(w.now+int64(e.Sample), evBin)
	w.pushWhole(w.now+watchNs, evWatch)
	w.pfcDog.schedule(w)
	w.pushWhole(w.end, evEnd)
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
	if w.part != nil {
		return w.runParts(ctx, progress)
	}
	told := w.now
	for {
		if w.ahead.due(&w.events) {
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
			progress(w.progress(w.now))
		}
		if w.draining && w.now > w.end+drainNs {
			return nil
		}
	}
}

// progress returns how much of the run is over at a time, 0 to 1.
func (w *world) progress(now int64) float64 {
	begin := w.t0 - int64(w.plan.exp.Warmup)
	return min(float64(now-begin)/float64(w.end-begin), 1)
}

// drainNs is how long packets under way may take to arrive when the senders have stopped.
const drainNs = 50_000_000

// happen handles an event.
func (w *world) happen(e *event) {
	t := &w.transport
	switch e.kind() {
	case evArrive:
		w.arrive(int32(e.arg))
	case evDecide:
		w.decide(int32(e.arg))
	case evWake:
		t.wake(&t.flows[e.arg])
	case evLink:
		w.linkEvent(e.arg)
	case evStart:
		t.begin(&t.flows[e.arg])
	case evRelease:
		t.release(int(e.arg))
	case evAck:
		t.ackDue(&t.flows[e.arg])
	case evWindow:
		t.windowDue(&t.flows[e.arg])
	case evTimeout:
		t.timeout(&t.flows[e.arg])
	case evRepeat:
		w.repeat(e.arg)
	case evRate:
		w.changeLink(w.changes[e.arg])
	case evBin:
		w.record.endBin(w)
		w.retireSplit()
		w.checkpoint()
	case evWatch:
		w.watchDeadlock()
		w.retireSplit()
	case evPoll:
		w.poll(e.arg)
	case evEnd:
		w.finish()
	}
}

// finish ends the measured time: what was counted of flows is kept, and senders stop.
func (w *world) finish() {
	w.transport.neverStarted()
	w.record.snapshot(w)
	for _, x := range w.worlds() {
		x.draining = true
	}
	w.endStorms()
	w.transport.stop()
}
