// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
)

// FlowKey names a flow: its sender first.
type FlowKey struct {
	Src      netip.AddrPort `json:"src"`
	Dst      netip.AddrPort `json:"dst"`
	Protocol uint8          `json:"protocol"` // 6 TCP, 17 UDP
}

func (k FlowKey) String() string { return fmt.Sprintf("%s->%s", k.Src, k.Dst) }

// MarshalBinary gives struct flow_key of bpf/include/flow.h.
func (k FlowKey) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, 40)
	src, dst := k.Src.Addr().As16(), k.Dst.Addr().As16()
	b = append(b, src[:]...)
	b = append(b, dst[:]...)
	b = binary.BigEndian.AppendUint16(b, k.Src.Port())
	b = binary.BigEndian.AppendUint16(b, k.Dst.Port())
	return append(b, k.Protocol, 0, 0, 0), nil
}

// UnmarshalBinary reads what MarshalBinary gives.
func (k *FlowKey) UnmarshalBinary(b []byte) error {
	if len(b) != 40 {
		return fmt.Errorf("flow key of %d bytes, want 40", len(b))
	}
	src := netip.AddrFrom16([16]byte(b[:16])).Unmap()
	dst := netip.AddrFrom16([16]byte(b[16:32])).Unmap()
	k.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b[32:]))
	k.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[34:]))
	k.Protocol = b[36]
	return nil
}

// Flow is what a sender knows of one of its flows. What the control's algorithm does not have is 0.
type Flow struct {
	FlowKey
	SendRateBps     uint64        `json:"send_rate_bps"`   // what the flow is paced by; 0: it has a window
	TargetRateBps   uint64        `json:"target_rate_bps"` // QCN, DCQCN: what it recovers to
	W               float64       `json:"w"`               // PCN: w
	CCTI            uint32        `json:"ccti"`            // InfiniBand: CCTI
	Alpha           float64       `json:"alpha"`           // DCQCN, DCTCP: alpha
	Window          float64       `json:"window_packets"`  // packets: LDCP's cw, or Reno's where a control that needs ECN got none
	RecRateBps      uint64        `json:"rec_rate_bps"`    // PCN: of the latest CNP that said decrease
	CNPDecrease     uint64        `json:"cnp_decrease"`    // CNPs and CNMs received, by kind
	CNPIncrease     uint64        `json:"cnp_increase"`
	ACKWindows      uint64        `json:"ack_windows"` // PCN: times that ACKs changed the rate, without CNPs
	CNPHold         uint64        `json:"cnp_hold"`    // TCD: CNPs that said undetermined
	SentBytes       uint64        `json:"sent_bytes"`  // of frames
	Packets         uint32        `json:"packets"`     // delivered, and those of them that ACKs said were marked with CE
	MarkedPackets   uint32        `json:"marked_packets"`
	Losses          uint64        `json:"losses"`  // times a loss cut the rate
	SRTT            time.Duration `json:"srtt_ns"` // on the kernel's clock
	Retransmissions uint32        `json:"retransmissions"`
	ECN             bool          `json:"ecn"` // negotiated; without it nothing is marked, and rate-based controls that need it have Reno's window
}

// newFlow is what every control keeps of a flow.
func newFlow(k FlowKey, s pcnSender) Flow {
	return Flow{
		FlowKey:         k,
		RecRateBps:      s.RecRateBps,
		CNPDecrease:     s.CnpDecrease,
		CNPIncrease:     s.CnpIncrease,
		CNPHold:         s.CnpHold,
		SentBytes:       s.SentBytes,
		Packets:         s.Packets,
		MarkedPackets:   s.MarkedPackets,
		Losses:          s.Losses,
		SRTT:            time.Duration(s.SrttUs) * time.Microsecond,
		Retransmissions: s.Retransmissions,
		ECN:             s.Ecn != 0,
		Window:          float64(s.PlainWindow),
	}
}

// flowTable reads and writes the entries of one control's flow table.
type flowTable interface {
	check(m *ebpf.Map) error
	decode(k FlowKey, value []byte) (Flow, error)
	lookup(m *ebpf.Map, k FlowKey) (Flow, error)
	all(m *ebpf.Map) ([]Flow, error)
	setRate(m *ebpf.Map, k FlowKey, rateBps uint64) error
}

// tableOf is the flow table with entries of type T.
type tableOf[T any] struct {
	flow    func(FlowKey, *T) Flow
	setting func(v *T, rateBps uint64) // nil: the control has no rate
}

// check says whether the map's entries are of this layout: another build of the program may have made it.
func (t tableOf[T]) check(m *ebpf.Map) error {
	if want := uint32(binary.Size(new(T))); m.ValueSize() != want {
		return fmt.Errorf("its entries have %d bytes, this program's %d: run pcn host up with this program", m.ValueSize(), want)
	}
	return nil
}

func (t tableOf[T]) decode(k FlowKey, value []byte) (Flow, error) {
	var v T
	if _, err := binary.Decode(value, binary.NativeEndian, &v); err != nil {
		return Flow{}, fmt.Errorf("decode flow %s: %w", k, err)
	}
	return t.flow(k, &v), nil
}

func (t tableOf[T]) lookup(m *ebpf.Map, k FlowKey) (Flow, error) {
	var v T
	if err := m.Lookup(k, &v); err != nil {
		return Flow{}, err
	}
	return t.flow(k, &v), nil
}

func (t tableOf[T]) all(m *ebpf.Map) ([]Flow, error) {
	var (
		flows []Flow
		k     FlowKey
		v     T
	)
	it := m.Iterate()
	for it.Next(&k, &v) {
		flows = append(flows, t.flow(k, &v))
	}
	return flows, it.Err()
}

func (t tableOf[T]) setRate(m *ebpf.Map, k FlowKey, rateBps uint64) error {
	if t.setting == nil {
		return errors.New("its control has no rate")
	}
	var v T
	if err := m.Lookup(k, &v); err != nil {
		return err
	}
	t.setting(&v, rateBps)
	return m.Update(k, &v, ebpf.UpdateExist|ebpf.UpdateLock)
}

var (
	pcnTable = tableOf[pcnPcnFlow]{
		flow: func(k FlowKey, v *pcnPcnFlow) Flow {
			f := newFlow(k, v.Sender)
			if f.Window != 0 {
				return f
			}
			f.SendRateBps, f.W = v.Rp.SendRateBps, float64(v.Rp.W)/(1<<qShift)
			f.ACKWindows = uint64(v.Ack.Windows)
			return f
		},
		setting: func(v *pcnPcnFlow, rateBps uint64) { v.Rp.SendRateBps = rateBps },
	}
	dcqcnTable = tableOf[dcqcnDcqcnFlow]{
		flow: func(k FlowKey, v *dcqcnDcqcnFlow) Flow {
			f := newFlow(k, pcnSender(v.Sender))
			if f.Window != 0 {
				return f
			}
			f.SendRateBps, f.TargetRateBps = v.Rp.Recovery.RateBps, v.Rp.Recovery.TargetBps
			f.Alpha = float64(v.Rp.Alpha) / (1 << qShift)
			return f
		},
		setting: func(v *dcqcnDcqcnFlow, rateBps uint64) {
			v.Rp.Recovery.RateBps, v.Rp.Recovery.TargetBps = rateBps, rateBps
		},
	}
	qcnTable = tableOf[qcnQcnFlow]{
		flow: func(k FlowKey, v *qcnQcnFlow) Flow {
			f := newFlow(k, pcnSender(v.Sender))
			f.SendRateBps, f.TargetRateBps = v.Rp.Recovery.RateBps, v.Rp.Recovery.TargetBps
			return f
		},
		setting: func(v *qcnQcnFlow, rateBps uint64) {
			v.Rp.Recovery.RateBps, v.Rp.Recovery.TargetBps = rateBps, rateBps
			v.Rp.Limited = 1 // as after a CNM: it goes on from here
		},
	}
	timelyTable = tableOf[timelyTimelyFlow]{
		flow: func(k FlowKey, v *timelyTimelyFlow) Flow {
			f := newFlow(k, pcnSender(v.Sender))
			f.SendRateBps = v.Rp.RateBps
			return f
		},
		setting: func(v *timelyTimelyFlow, rateBps uint64) { v.Rp.RateBps = rateBps },
	}
	dctcpTable = tableOf[dctcpDctcpFlow]{
		flow: func(k FlowKey, v *dctcpDctcpFlow) Flow {
			f := newFlow(k, pcnSender(v.Sender))
			f.Alpha = float64(v.Dctcp.Alpha) / dctcpAlphaOne
			return f
		},
	}
	ldcpTable = tableOf[ldcpLdcpFlow]{
		flow: func(k FlowKey, v *ldcpLdcpFlow) Flow {
			f := newFlow(k, pcnSender(v.Sender))
			f.Window = float64(v.Ldcp.Cw) / (1 << qShift)
			return f
		},
	}
)

// ErrNoFlow says that the control has no such flow, or keeps no table of flows.
var ErrNoFlow = errors.New("no such flow")

// FlowTable is the map of the control's live flows, for tc.LoadRP; nil if it has none.
func (c *Control) FlowTable() *ebpf.Map { return c.flows }

// HasRate says whether the control has a rate for each flow, and not a window.
func (c *Control) HasRate() bool { return c.limits.lineBps != 0 }

// Flow reads one live flow. The error wraps ErrNoFlow if there is none.
func (c *Control) Flow(k FlowKey) (Flow, error) {
	if c.table == nil {
		return Flow{}, fmt.Errorf("flow %s: congestion control %s keeps no flow table: %w", k, c.name, ErrNoFlow)
	}
	f, err := c.table.lookup(c.flows, k)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return Flow{}, fmt.Errorf("flow %s of congestion control %s: %w", k, c.name, ErrNoFlow)
	}
	if err != nil {
		return Flow{}, fmt.Errorf("read flow %s of congestion control %s: %w", k, c.name, err)
	}
	return f, nil
}

// Decode reads an entry of the flow table.
func (c *Control) Decode(k FlowKey, value []byte) (Flow, error) {
	if c.table == nil {
		return Flow{}, fmt.Errorf("flow %s: congestion control %s keeps no flow table: %w", k, c.name, ErrNoFlow)
	}
	return c.table.decode(k, value)
}

// Flows reads all live flows. Flows that come and go meanwhile may be missed.
func (c *Control) Flows() ([]Flow, error) {
	if c.table == nil {
		return nil, nil
	}
	flows, err := c.table.all(c.flows)
	if err != nil {
		return nil, fmt.Errorf("read flows of congestion control %s: %w", c.name, err)
	}
	return flows, nil
}

// SetSendRate overrides a live flow's rate, as an experiment does to start a flow elsewhere than at line rate. The
// rate lies between the control's floor and line rate. The sender takes it up at its next ACK. The flow's entry is written
// whole: what its ACKs and CNPs change in that moment is lost, so set the rate before it sends.
func (c *Control) SetSendRate(k FlowKey, rateBps uint64) error {
	if _, err := c.Flow(k); err != nil {
		return err
	}
	if rateBps < c.limits.minBps || rateBps > c.limits.lineBps {
		return fmt.Errorf("set rate of flow %s to %d bit/s: want %d to %d bit/s", k, rateBps, c.limits.minBps, c.limits.lineBps)
	}
	if err := c.table.setRate(c.flows, k, rateBps); err != nil {
		return fmt.Errorf("set rate of flow %s: %w", k, err)
	}
	return nil
}
