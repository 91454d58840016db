// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/loader"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

// algorithm is the scheme of a run with its values in the experiment.
type algorithm struct {
	scheme.Scheme
	scheme.Setup
	values  *scheme.Values // of its own parameters; nil for a control of the kernel's own
	marking *scheme.Values // of its marking and notification; nil if it has none
	marker  []byte         // parameters of a marking rule of the user's own
}

// algorithmOf looks a scheme of the experiment up.
func algorithmOf(e *experiment.Experiment, name string) (algorithm, error) {
	s, err := e.Scheme(name)
	if err != nil {
		return algorithm{}, err
	}
	setup := e.Setup(s)
	if _, ok := markers[setup.Marker]; !ok {
		return algorithm{}, fmt.Errorf("scheme %s: switches can't mark by %q", name, setup.Marker)
	}
	if setup.Marker == scheme.OwnPart && setup.Hears == "cnm" {
		return algorithm{}, fmt.Errorf("scheme %s: a marking rule of your own has feedback in the "+
			"simulator only: run it with `--engine sim`", name)
	}
	a := algorithm{Scheme: s, Setup: setup, values: e.Values(s), marking: e.MarkingValues(s)}
	if setup.Marker == scheme.OwnPart {
		n := scheme.Network{LineRateBps: uint64(e.Topology.Rate), FrameBytes: uint64(e.Frame)}
		a.marker, err = a.marking.Bytes(scheme.MarkerVariable, n, a.TCD)
	}
	return a, err
}

// isLine reports whether senders have no control and send at the rates that the experiment sets.
func (a algorithm) isLine() bool { return a.Sender == scheme.SenderLine }

// hearsCNMs reports whether senders obey QCN's messages from switches.
func (a algorithm) hearsCNMs() bool { return a.Hears == "cnm" }

// network returns what parameters depend on.
func (p *plan) network() scheme.Network { return p.exp.SenderNetwork(p.rttNs) }

// loadControl registers the scheme's congestion control and loads the other programs of senders and
// receivers.
func (f *fabric) loadControl() (err error) {
	a := f.algorithm
	if f.control, err = loader.Register(loader.Registration{
		Scheme: a.Scheme, Settings: f.plan.exp.Settings(a.Scheme), Network: f.plan.network(),
		DilationShift: f.shift(), MaxFlows: f.plan.flowTable(),
	}); err != nil {
		return err
	}
	if f.np, err = f.loadNotificationPoint(); err != nil {
		return err
	}
	if a.Hears != scheme.None {
		if f.rp, err = tc.LoadRP(f.control); err != nil {
			return err
		}
	}
	if dropsFirstRTT(f.plan.exp, a) {
		f.firstRTT, err = tc.LoadFirstRTT(f.control)
	}
	return err
}

// loadNotificationPoint loads the scheme's notification point; nil if it has none.
func (f *fabric) loadNotificationPoint() (*tc.NP, error) {
	a := f.algorithm
	if a.Notification == scheme.None {
		return nil, nil
	}
	params, err := a.marking.Bytes(scheme.NotificationVariable, f.plan.network(), a.TCD)
	if err != nil {
		return nil, err
	}
	o := tc.PointOptions{
		Params: params, IdealTime: true, DilationShift: f.shift(), TCD: a.TCD,
		MaxFlows: f.plan.flowTable(),
	}
	if a.Own != nil {
		o.Object = a.Own.Notification
	}
	return tc.LoadPoint(a.Notification, o)
}

func (f *fabric) shift() uint32 { return uint32(f.plan.exp.Dilation.Shift) }

// markers holds the marking rules of switch ports by their names in schemes.
var markers = map[string]npecn.Marker{
	scheme.None: npecn.NoMarker, "npecn": npecn.NPECN, "red": npecn.RED, "fecn": npecn.FECN,
	"qcn":          npecn.QCN,
	scheme.OwnPart: npecn.OwnMarker,
}

// setMarker configures how the port marks under the scheme.
func setMarker(
	q *npecn.Port, e *experiment.Experiment, a algorithm, own experiment.OwnSwitch,
) {
	q.Marker = markers[a.Marker]
	q.LimitBytes = uint64(e.Switch.PortBuffer)
	if dropsFirstRTT(e, a) {
		q.WREDBytes = e.WREDAt(uint64(a.values.Get("wred_k").Number), q.RateBps)
	}
	switch q.Marker {
	case npecn.OwnMarker:
		q.OwnMarkerParams = a.marker
	case npecn.QCN:
		q.QCN = npecn.QCNOptions{
			QeqBytes: uint64(a.marking.Get("qeq").Number), W: a.marking.Get("w").Number,
			SampleBaseBytes: uint64(a.marking.Get("sample_base").Number),
			SampleJitter:    a.marking.Get("sample_jitter").Number,
		}
	case npecn.RED:
		m, _ := e.MarkingAt(a.Name, q.RateBps)
		if kmin, kmax, ok := e.OwnMarkingAt(own, q.RateBps); ok {
			m.KMin, m.KMax = kmin, kmax
		}
		q.RED = npecn.REDOptions{KMinBytes: uint64(m.KMin), KMaxBytes: uint64(m.KMax),
			PMax: float64(m.PMax), AllAtKMax: a.AllAtKMax}
	}
}

// dropsFirstRTT reports whether switches drop packets of the first round trip: not in a lossless
// network.
func dropsFirstRTT(e *experiment.Experiment, a algorithm) bool {
	return a.DropFirstRTT && !e.PFCOn(a.Name)
}

// setDetection configures what a switch port detects, and whether it marks by that.
func setDetection(q *npecn.Port, e *experiment.Experiment, a algorithm) {
	q.FECN = npecn.FECNOptions{
		ThresholdBytes: uint64(e.FECN.Threshold), PacketBytes: uint32(e.FECN.PacketSize),
		MarkingRate: uint32(e.FECN.MarkingRate), Victims: e.FECN.Victims,
	}
	if !e.Switch.Detectors && !a.TCD {
		return
	}
	q.Detect = npecn.Detection{
		MaxTonNs: uint64(e.MaxTon()), TCD: a.TCD, Watch: e.Switch.Detectors,
		ECNBytes: uint64(e.ECNThreshold()), OverBytes: uint64(e.ECNThreshold()),
	}
	if e.Switch.FlowControl == experiment.FlowCBFC {
		q.Detect.OverBytes = uint64(e.FECN.Threshold)
	}
}
