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
	Src, Dst netip.AddrPort
	Protocol uint8 // 6 TCP, 17 UDP
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

// Flow is what a PCN sender knows of one of its flows.
type Flow struct {
	FlowKey
	SendRateBps     uint64  // sendRate
	W               float64 // w
	RecRateBps      uint64  // of the latest CNP that said decrease
	CNPDecrease     uint64  // CNPs received, by kind
	CNPIncrease     uint64
	Packets         uint32 // delivered, and those of them that ACKs said were marked with CE
	MarkedPackets   uint32
	Losses          uint64        // times a loss halved the rate
	SRTT            time.Duration // on the kernel's clock
	Retransmissions uint32
	ECN             bool // negotiated; without it nothing is marked
}

func (v *pcnRpFlow) flow(k FlowKey) Flow {
	return Flow{
		FlowKey:         k,
		SendRateBps:     v.Rp.SendRateBps,
		W:               float64(v.Rp.W) / (1 << wShift),
		RecRateBps:      v.RecRateBps,
		CNPDecrease:     v.CnpDecrease,
		CNPIncrease:     v.CnpIncrease,
		Packets:         v.Packets,
		MarkedPackets:   v.MarkedPackets,
		Losses:          v.Losses,
		SRTT:            time.Duration(v.SrttUs) * time.Microsecond,
		Retransmissions: v.Retransmissions,
		ECN:             v.Ecn != 0,
	}
}

// ErrNoFlow says that the control has no such flow, or keeps no table of flows.
var ErrNoFlow = errors.New("no such flow")

// FlowTable is the map of the control's live flows, for tc.LoadRP; nil if it has none.
func (c *Control) FlowTable() *ebpf.Map { return c.flows }

// Flow reads one live flow. The error wraps ErrNoFlow if there is none.
func (c *Control) Flow(k FlowKey) (Flow, error) {
	v, err := c.lookup(k)
	if err != nil {
		return Flow{}, err
	}
	return v.flow(k), nil
}

func (c *Control) lookup(k FlowKey) (*pcnRpFlow, error) {
	if c.flows == nil {
		return nil, fmt.Errorf("flow %s: congestion control %s keeps no flow table: %w", k, c.name, ErrNoFlow)
	}
	var v pcnRpFlow
	err := c.flows.Lookup(k, &v)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, fmt.Errorf("flow %s of congestion control %s: %w", k, c.name, ErrNoFlow)
	}
	if err != nil {
		return nil, fmt.Errorf("read flow %s of congestion control %s: %w", k, c.name, err)
	}
	return &v, nil
}

// Flows reads all live flows. Flows that come and go meanwhile may be missed.
func (c *Control) Flows() ([]Flow, error) {
	if c.flows == nil {
		return nil, nil
	}
	var (
		flows []Flow
		k     FlowKey
		v     pcnRpFlow
	)
	it := c.flows.Iterate()
	for it.Next(&k, &v) {
		flows = append(flows, v.flow(k))
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("read flows of congestion control %s: %w", c.name, err)
	}
	return flows, nil
}

// SetSendRate overrides a live flow's sendRate, as an experiment does to start a flow elsewhere than at line
// rate. The rate lies between the control's floor and line rate. The sender takes it up at its next ACK.
func (c *Control) SetSendRate(k FlowKey, rateBps uint64) error {
	v, err := c.lookup(k)
	if err != nil {
		return err
	}
	if p := v.Params; rateBps < p.MinRateBps || rateBps > p.LineRateBps {
		return fmt.Errorf("set rate of flow %s to %d bit/s: want %d to %d bit/s", k, rateBps, p.MinRateBps, p.LineRateBps)
	}
	v.Rp.SendRateBps = rateBps
	if err := c.flows.Update(k, v, ebpf.UpdateExist); err != nil {
		return fmt.Errorf("set rate of flow %s: %w", k, err)
	}
	return nil
}
