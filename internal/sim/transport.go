// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/gate"
	"github.com/pcn-linux/pcn/internal/result"
)

// transport is what hosts do: the senders and receivers of flows, as TCP or RoCE. It hands packets
// to hosts' ports; [world] is the network behind them, which calls receive and handedOver.
type transport struct {
	*clock
	plan    *plan
	packets *slab
	enqueue func(port, packet, ingress int32) // puts a packet into a port
	ranks   ranks

	flows   []flow
	streams int         // flows that the scheme controls; bursts' flows follow
	gates   *gate.Gates // of controlled flows; nil: none waits
	steps   []int32     // ports of all fixed paths, one path behind the other

	rows []result.Flow // of flows that have retired, by their number; nil: none does
	done []int32       // flows that may retire when all parts stand still

	control   *control          // nil if nothing controls senders
	senders   map[uint64]sender // by line rate of hosts
	notifier  *notifier         // nil if receivers answer nothing
	telemetry *telemetry        // nil if switches write none

	minTimeoutNs int64
	reorders     bool // the network may: no packet is lost because a later one has arrived
	dropFirstRTT bool // packets of the first round trip are not ECN-capable

	// RoCE's transport:
	goBackN     bool
	goBackZero  bool   // and to the flow's first packet
	flightBytes uint64 // of each flow at most; 0: any, or what its host sends in flightNs
	flightNs    uint64
	scaleFlight bool // by its rate

	// How receivers answer:
	cnpsOnACKs bool
	ackBytes   uint32
	delayedACK bool
	gro        bool // a receiver acknowledges once what it sees at one look
	latchECE   bool // receivers echo marks as RFC 3168 does
}

// Retransmission timeouts: above the longest pause, or in a lossy network above the longest gap
// between two packets.
const (
	minTimeoutNs      = 30_000_000
	minTimeoutLossyNs = 10_000_000
)

// setTransport prepares the transport; its flows come with addFlows.
func (w *world) setTransport() {
	p := w.plan
	e, t := p.exp, p.exp.Transport
	w.transport = transport{
		clock: &w.clock, plan: p, packets: &w.packets, enqueue: w.enqueue, ranks: w.ranks,
		minTimeoutNs: minTimeoutNs, reorders: w.spray,
		goBackZero:  t.Recovery == experiment.RecoveryGoBack0,
		scaleFlight: t.ScaleWindow, flightBytes: uint64(t.Window.Bytes),
		cnpsOnACKs: t.CNP == experiment.ReplyOnACK, ackBytes: uint32(t.AckSize),
		delayedACK: p.setup.DelayedACK || e.AckEvery == 2,
		gro:        e.Noise.GRO,
		latchECE:   p.setup.CountsACKs && !p.setup.AccECN,
	}
	w.transport.goBackN = w.transport.goBackZero || t.Recovery == experiment.RecoveryGoBackN
	if !w.lossless || e.Switch.Lossy() {
		w.transport.minTimeoutNs = minTimeoutLossyNs
	}
	if !w.lossless {
		w.transport.dropFirstRTT = p.setup.DropFirstRTT
	}
	if t.Window.BDP {
		w.transport.flightBytes = p.bdpBytes(uint64(e.Frame))
	}
}

// load instantiates the control and the notification point of the scheme.
func (t *transport) load(
	ctx context.Context, r runtime, n scheme.Network, marking *scheme.Values,
) error {
	s := t.plan.scheme
	if s.Sender != scheme.SenderLine {
		n.PathRTTNs = t.plan.pathRTTNs(t.plan.fullFrame())
		if err := t.loadControl(ctx, r, n); err != nil {
			return err
		}
		if err := t.setTelemetry(); err != nil {
			return err
		}
	}
	name := t.plan.setup.Notification
	if name == scheme.None {
		return nil
	}
	params, err := marking.Bytes(scheme.NotificationVariable, n, s.TCD)
	if err != nil {
		return err
	}
	code, err := notificationCode(s, name)
	if err != nil {
		return err
	}
	t.notifier, err = newNotifier(ctx, r, "notification", code, params, s.TCD)
	return err
}

func (t *transport) loadControl(
	ctx context.Context, r runtime, n scheme.Network,
) error {
	t.senders = map[uint64]sender{}
	for _, f := range t.plan.exp.Flows {
		rate := uint64(t.plan.exp.HostRate(f.From))
		if _, ok := t.senders[rate]; ok {
			continue
		}
		n.LineRateBps = rate
		s, err := newSender(t.plan.scheme, t.plan.exp.Settings(t.plan.scheme), n)
		if err != nil {
			return err
		}
		t.senders[rate] = s
	}
	code, err := controlCode(t.plan.scheme)
	if err != nil {
		return err
	}
	t.control, err = newControl(ctx, r, t.plan.scheme, code, t.senders, t.plan.seed32())
	return err
}

// sender is the control of hosts with one line rate.
type sender struct {
	values    *scheme.Values
	variables map[string][]byte
}

// newSender resolves the parameters of a scheme's control for hosts in a network.
func newSender(s scheme.Scheme, given scheme.Settings, n scheme.Network) (sender, error) {
	values, problems := s.Object.Resolve(given, n)
	for _, p := range problems { // the experiment was checked; the path's delay was not known
		return sender{}, fmt.Errorf("scheme %s: %s: %s", s.Name, p.Key, p.Msg)
	}
	variables := map[string][]byte{}
	for _, name := range s.Object.Variables() {
		value, err := values.Bytes(name, n, s.TCD)
		if err != nil {
			return sender{}, err
		}
		variables[name] = value
	}
	return sender{values, variables}, nil
}

// maxRTTNs is the longest round trip of a control: TCP's smoothed one, in eighths of a us of the
// kernel's clock, has 32 bits.
const maxRTTNs = 400_000_000

// checkRoundTrip fails for round trips that are too long, and leaves no timeout shorter than two.
func (t *transport) checkRoundTrip() error {
	rttNs := t.plan.pathRTTNs(t.plan.fullFrame())
	if t.control != nil && rttNs > maxRTTNs {
		return fmt.Errorf("the longest round trip is %s, want at most %s: shorten delays",
			experiment.Duration(rttNs), experiment.Duration(maxRTTNs))
	}
	t.minTimeoutNs = max(t.minTimeoutNs, 2*int64(rttNs))
	return nil
}

// flightOf returns how much a flow of a host with this line rate may have under way.
func (t *transport) flightOf(lineRate uint64) uint64 {
	if t.flightNs != 0 {
		return bytesIn(t.flightNs, lineRate)
	}
	return t.flightBytes
}

// stop stops the flows at the end of the measured time. Bursts go on: as on Linux, their packets
// have been in their hosts' ports all the time.
func (t *transport) stop() {
	for i := range t.flows[:t.streams] {
		t.flows[i].stopped = true
	}
}
