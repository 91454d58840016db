// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/pcn-linux/pcn/config/scheme"
)

// FlowKey identifies a flow; Src is its sender.
type FlowKey struct {
	Src      netip.AddrPort `json:"src"`
	Dst      netip.AddrPort `json:"dst"`
	Protocol uint8          `json:"protocol"` // 6 TCP, 17 UDP
	// Netns is the cookie of the flow's network namespace, as SO_NETNS_COOKIE tells it; 0 in the
	// lab, and where the kernel tells tc programs no namespace (before 6.2).
	Netns uint64 `json:"netns"`
}

func (k FlowKey) String() string { return fmt.Sprintf("%s->%s", k.Src, k.Dst) }

// flowKeyBytes is the size of struct flow_key (bpf/include/flow.h), whose layout is part of the
// maps' interface: two addresses, two ports in network byte order, the protocol, three bytes of
// zero and the network namespace.
const flowKeyBytes = 48

// MarshalBinary returns the bytes of struct flow_key.
func (k FlowKey) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, flowKeyBytes)
	src, dst := k.Src.Addr().As16(), k.Dst.Addr().As16()
	b = append(b, src[:]...)
	b = append(b, dst[:]...)
	b = binary.BigEndian.AppendUint16(b, k.Src.Port())
	b = binary.BigEndian.AppendUint16(b, k.Dst.Port())
	b = append(b, k.Protocol, 0, 0, 0)
	return binary.LittleEndian.AppendUint64(b, k.Netns), nil
}

// UnmarshalBinary decodes struct flow_key.
func (k *FlowKey) UnmarshalBinary(b []byte) error {
	if len(b) != flowKeyBytes {
		return fmt.Errorf("flow key of %d bytes: want %d", len(b), flowKeyBytes)
	}
	src := netip.AddrFrom16([16]byte(b[:16])).Unmap()
	dst := netip.AddrFrom16([16]byte(b[16:32])).Unmap()
	k.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b[32:]))
	k.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[34:]))
	k.Protocol = b[36]
	k.Netns = binary.LittleEndian.Uint64(b[40:])
	return nil
}

// Flow is a sender's state of one flow.
type Flow struct {
	FlowKey
	// SendRateBps is the flow's pacing rate; 0 if a window controls it.
	SendRateBps uint64 `json:"send_rate_bps"`
	// Window is in packets. It is 0 for a rate-based control, unless Doubt says why the flow has
	// TCP's window.
	Window float64 `json:"window_packets"`
	// RecRateBps is the RecRate of the latest CNP that asked for a decrease.
	RecRateBps  uint64 `json:"rec_rate_bps"`
	CNPDecrease uint64 `json:"cnp_decrease"` // received CNPs and CNMs that ask for a lower rate
	CNPIncrease uint64 `json:"cnp_increase"` // CNPs that allow a higher one
	CNPHold     uint64 `json:"cnp_hold"`     // CNPs that ask for neither
	// SentBytes counts whole frames.
	SentBytes     uint64 `json:"sent_bytes"`
	Packets       uint32 `json:"packets"`        // that were delivered
	MarkedPackets uint32 `json:"marked_packets"` // whose CE mark ACKs reported
	// Losses counts the cuts of the rate or window because of a loss.
	Losses uint64 `json:"losses"`
	// SRTT is the smoothed round trip on the kernel's clock.
	SRTT            time.Duration `json:"srtt_ns"`
	Retransmissions uint32        `json:"retransmissions"` // packets that TCP sent again
	// ECN reports whether it was negotiated. Without it no packet is marked.
	ECN bool `json:"ecn"`
	// Doubt says why the flow does not go by its control, but has a TCP window (enum doubt_reason
	// of bpf/algo/doubt.h, such as no_marks); empty if it goes by its control.
	Doubt string `json:"doubt"`

	stats  []scheme.Stat
	values []float64
}

// Stat returns a statistic of the control's algorithm by its key, such as alpha; 0 if there is
// none.
func (f Flow) Stat(key string) float64 {
	for i, s := range f.stats {
		if s.Key == key {
			return f.values[i]
		}
	}
	return 0
}

// Stats returns the statistics of the control's algorithm and their values, in the same order.
func (f Flow) Stats() ([]scheme.Stat, []float64) { return f.stats, f.values }

// MarshalJSON writes the fields that all flows have, then the statistics of the flow's algorithm.
func (f Flow) MarshalJSON() ([]byte, error) {
	type plain Flow
	text, err := json.Marshal(plain(f))
	if err != nil {
		return nil, err
	}
	return f.appendStats(text), nil
}

// appendStats adds the statistics at the end of a JSON object.
func (f Flow) appendStats(object []byte) []byte {
	object = bytes.TrimSuffix(object, []byte("}"))
	for i, s := range f.stats {
		if s.Key == WindowStat {
			continue
		}
		object = fmt.Appendf(object, ",%q:%s", s.Key, strconv.FormatFloat(f.values[i], 'g', -1, 64))
	}
	return append(object, '}')
}

// WindowStat is the key of the statistic that holds the flow's window.
const WindowStat = "window_packets"

// flowLayout locates the fields of an entry in a control's flow table.
type flowLayout struct {
	size   uint32
	sender map[string]field // of struct sender
	stats  []scheme.Stat
	doubts map[uint64]string // names of enum doubt_reason
}

// field is a number in an entry.
type field struct{ offset, size uint32 }

// layoutOf reads the layout of the flow table's entries; it returns nil if the object has no table.
func layoutOf(o *scheme.Object, flows *ebpf.MapSpec) (*flowLayout, error) {
	if flows == nil {
		return nil, nil
	}
	entry, ok := btf.As[*btf.Struct](flows.Value)
	if !ok {
		return nil, fmt.Errorf("map %s: its values are not a struct", flowsMap)
	}
	return entryLayout(entry, flows.ValueSize, o.Stats)
}

// entryLayout reads the layout of a flow table's entries out of their type.
func entryLayout(entry *btf.Struct, size uint32, stats []scheme.Stat) (*flowLayout, error) {
	for _, m := range entry.Members {
		sender, ok := btf.As[*btf.Struct](m.Type)
		if !ok || sender.Name != "sender" {
			continue
		}
		l := &flowLayout{size: size, sender: map[string]field{}, stats: stats,
			doubts: map[uint64]string{}}
		for _, f := range sender.Members {
			if reasons, ok := btf.As[*btf.Enum](f.Type); ok && f.Name == "doubt" {
				for _, v := range reasons.Values {
					name := strings.ToLower(strings.TrimPrefix(v.Name, "DOUBT_"))
					l.doubts[v.Value] = name
				}
				l.doubts[0] = ""
			}
			size, err := btf.Sizeof(f.Type)
			if err != nil {
				return nil, err
			}
			l.sender[f.Name] = field{(m.Offset + f.Offset).Bytes(), uint32(size)}
		}
		return l, l.check()
	}
	return nil, fmt.Errorf("map %s: its values have no struct sender", flowsMap)
}

// The fields of struct sender that are read.
var senderFields = []string{
	"sent_bytes", "send_rate_bps", "rec_rate_bps", "cnp_decrease", "cnp_increase", "cnp_hold",
	"losses",
	"packets", "marked_packets", "srtt_us", "retransmissions", "ecn", "plain_window",
	"doubt",
}

func (l *flowLayout) check() error {
	for _, name := range senderFields {
		if _, ok := l.sender[name]; !ok {
			return fmt.Errorf("struct sender has no field %s", name)
		}
	}
	return nil
}

// decode reads an entry.
func (l *flowLayout) decode(k FlowKey, entry []byte) (Flow, error) {
	if uint32(len(entry)) != l.size {
		return Flow{}, fmt.Errorf("flow %s: its entry has %d bytes: want %d", k, len(entry), l.size)
	}
	get := func(name string) uint64 {
		f := l.sender[name]
		var b [8]byte
		copy(b[:], entry[f.offset:f.offset+f.size])
		return binary.LittleEndian.Uint64(b[:])
	}
	f := Flow{
		FlowKey: k, SendRateBps: get("send_rate_bps"), RecRateBps: get("rec_rate_bps"),
		CNPDecrease: get("cnp_decrease"), CNPIncrease: get("cnp_increase"),
		CNPHold:   get("cnp_hold"),
		SentBytes: get("sent_bytes"), Losses: get("losses"),
		Packets: uint32(get("packets")), MarkedPackets: uint32(get("marked_packets")),
		SRTT:            time.Duration(get("srtt_us")) * time.Microsecond,
		Retransmissions: uint32(get("retransmissions")), ECN: get("ecn") != 0,
		Window: float64(get("plain_window")), Doubt: l.doubts[get("doubt")],
		stats: l.stats,
	}
	for _, s := range l.stats {
		value := s.Read(entry)
		f.values = append(f.values, value)
		if s.Key == WindowStat {
			f.Window = value
		}
	}
	return f, nil
}

// ErrNoFlow reports that the control has no such flow, or keeps no flow table.
var ErrNoFlow = errors.New("no such flow")

func (c *Control) noTable() error {
	return fmt.Errorf("congestion control %s keeps no flow table: %w", c.Name(), ErrNoFlow)
}

// FlowTable returns the map of the control's live flows; nil if it has none.
func (c *Control) FlowTable() *ebpf.Map { return c.flows }

// HasRate reports whether the control is rate-based, not window-based.
func (c *Control) HasRate() bool { return c.limits.lineBps != 0 }

// MinRateBps returns the floor of the control's rates, in bit/s: 0 if it is not rate-based.
func (c *Control) MinRateBps() uint64 { return c.limits.minBps }

// Flow reads one live flow. The error wraps [ErrNoFlow] if there is none.
func (c *Control) Flow(k FlowKey) (Flow, error) {
	if c.layout == nil {
		return Flow{}, fmt.Errorf("flow %s: %w", k, c.noTable())
	}
	entry := make([]byte, c.layout.size)
	err := c.flows.Lookup(k, entry)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return Flow{}, fmt.Errorf("flow %s of congestion control %s: %w", k, c.Name(), ErrNoFlow)
	}
	if err != nil {
		return Flow{}, fmt.Errorf("read flow %s of congestion control %s: %w", k, c.Name(), err)
	}
	return c.layout.decode(k, entry)
}

// Decode reads an entry of the flow table.
func (c *Control) Decode(k FlowKey, entry []byte) (Flow, error) {
	if c.layout == nil {
		return Flow{}, fmt.Errorf("flow %s: %w", k, c.noTable())
	}
	return c.layout.decode(k, entry)
}

// Flows reads all live flows. It may miss flows that start or end meanwhile.
func (c *Control) Flows() ([]Flow, error) {
	if c.layout == nil {
		return nil, nil
	}
	var (
		flows []Flow
		k     FlowKey
	)
	entry := make([]byte, c.layout.size)
	it := c.flows.Iterate()
	for it.Next(&k, &entry) {
		f, err := c.layout.decode(k, entry)
		if err != nil {
			return nil, err
		}
		flows = append(flows, f)
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("read flows of congestion control %s: %w", c.Name(), err)
	}
	return flows, nil
}

// SetSendRate overrides a live flow's rate, so that an experiment can start a flow below line rate.
// It fails for rates below the control's floor or above the line rate. The sender applies the rate
// at its next ACK.
func (c *Control) SetSendRate(k FlowKey, rateBps uint64) error {
	if _, err := c.Flow(k); err != nil {
		return err
	}
	if !c.HasRate() {
		return fmt.Errorf("set rate of flow %s: congestion control %s is not rate-based", k,
			c.Name())
	}
	if rateBps < c.limits.minBps || rateBps > c.limits.lineBps {
		return fmt.Errorf("set rate of flow %s to %d bit/s: want %d to %d bit/s", k, rateBps,
			c.limits.minBps, c.limits.lineBps)
	}
	key, err := k.MarshalBinary()
	if err != nil {
		return err
	}
	order := binary.LittleEndian.AppendUint64(key, rateBps) // struct rate_order
	result, err := c.coll.Programs[setRate].Run(&ebpf.RunOptions{Data: order})
	if err != nil {
		return fmt.Errorf("set rate of flow %s: %w", k, err)
	}
	if result != 0 {
		return fmt.Errorf("set rate of flow %s: %w", k, ErrNoFlow)
	}
	return nil
}
