// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/pcn-linux/pcn/loader"
)

// TraceEvent is a sender's state of a flow after an event. The New counters say which event.
type TraceEvent struct {
	At             time.Duration // on the kernel's clock, since it booted
	Cwnd           uint32
	PacketsOut     uint32 // under way
	LiveFlow              // the flow after it
	NewDecrease    uint64 // of each, since the event before; all of them in the first
	NewIncrease    uint64
	NewMarks       uint32
	NewLosses      uint64
	NewRetransmits uint32
}

// MarshalJSON writes the event's own keys and those of the flow as one object.
func (e TraceEvent) MarshalJSON() ([]byte, error) {
	return joinObjects(map[string]any{
		"at_ns": e.At, "cwnd_packets": e.Cwnd, "out_packets": e.PacketsOut,
		"new_cnp_decrease": e.NewDecrease, "new_cnp_increase": e.NewIncrease,
		"new_marked_packets": e.NewMarks, "new_losses": e.NewLosses,
		"new_retransmissions": e.NewRetransmits,
	}, e.LiveFlow)
}

// What describes the event in words.
func (e TraceEvent) What() string {
	var what []string
	for _, one := range []struct {
		n    uint64
		name string
	}{
		{e.NewDecrease, "CNP decrease"}, {e.NewIncrease, "CNP increase"}, {e.NewLosses, "loss"},
		{uint64(e.NewRetransmits), "retransmission"}, {uint64(e.NewMarks), "marked"},
	} {
		switch {
		case one.n == 1:
			what = append(what, one.name)
		case one.n > 1:
			what = append(what, fmt.Sprintf("%d x %s", one.n, one.name))
		}
	}
	if len(what) == 0 {
		return "ACK"
	}
	return strings.Join(what, ", ")
}

// Trace calls tell for a flow's events as they happen, until the context ends or tell fails. An
// event is a segment from the peer after which a counter of the flow has grown, or any segment with
// everyACK. Tracing costs about 100 ns per segment of any flow, and nothing while nobody traces.
func (h *Host) Trace(ctx context.Context, f LiveFlow, everyACK bool,
	tell func(TraceEvent) error) error {
	c, err := h.Control(f.Control)
	if err != nil {
		return err
	}
	defer c.FlowTable().Close()
	coll, err := loadTracer(c, f.FlowKey, everyACK)
	if err != nil {
		return err
	}
	defer coll.Close()
	l, err := link.AttachTracing(link.TracingOptions{Program: coll.Programs["trace"]})
	if err != nil {
		return fmt.Errorf("attach the tracer: %w", err)
	}
	defer l.Close()
	r, err := ringbuf.NewReader(coll.Maps["events"])
	if err != nil {
		return fmt.Errorf("read the tracer's events: %w", err)
	}
	defer r.Close()
	stop := context.AfterFunc(ctx, func() { r.Close() })
	defer stop()
	return readTrace(r, c, f, tell)
}

func loadTracer(c *loader.Control, k loader.FlowKey, everyACK bool) (*ebpf.Collection, error) {
	spec, err := loadTrace()
	if err != nil {
		return nil, err
	}
	key, err := k.MarshalBinary()
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]any{"flow_traced": key,
		"value_size": c.FlowTable().ValueSize(), "every_ack": everyACK,
		loader.NetnsKeysVariable: k.Netns != 0} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("tracer: set %s: %w", name, err)
		}
	}
	flows := c.FlowTable()
	if size := int(flows.ValueSize()); size > len(traceTraceEvent{}.Value) {
		return nil, fmt.Errorf("flows of congestion control %s have %d bytes, the tracer takes %d",
			c.Name(), size, len(traceTraceEvent{}.Value))
	}
	spec.Maps["flows"].MaxEntries, spec.Maps["flows"].ValueSize = flows.MaxEntries(),
		flows.ValueSize()
	spec.Maps["flows"].Value = nil
	coll, err := ebpf.NewCollectionWithOptions(spec,
		ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{"flows": flows}})
	if err != nil {
		return nil, fmt.Errorf("load the tracer (it needs CAP_BPF and CAP_PERFMON): %w", err)
	}
	return coll, nil
}

func readTrace(r *ringbuf.Reader, c *loader.Control, f LiveFlow,
	tell func(TraceEvent) error) error {
	last := f.Flow
	for {
		record, err := r.Read()
		if errors.Is(err, ringbuf.ErrClosed) || errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the tracer's events: %w", err)
		}
		var raw traceTraceEvent
		if err := binary.Read(bytes.NewReader(record.RawSample), binary.NativeEndian,
			&raw); err != nil {
			return fmt.Errorf("read the tracer's events: %w", err)
		}
		now, err := c.Decode(f.FlowKey, raw.Value[:c.FlowTable().ValueSize()])
		if err != nil {
			return err
		}
		if err := tell(newTraceEvent(raw, LiveFlow{f.Control, now}, last)); err != nil {
			return err
		}
		last = now
	}
}

func newTraceEvent(raw traceTraceEvent, now LiveFlow, last loader.Flow) TraceEvent {
	return TraceEvent{
		At: time.Duration(raw.T_ns), Cwnd: raw.Cwnd, PacketsOut: raw.PacketsOut, LiveFlow: now,
		NewDecrease: now.CNPDecrease - last.CNPDecrease,
		NewIncrease: now.CNPIncrease - last.CNPIncrease,
		NewMarks:    now.MarkedPackets - last.MarkedPackets, NewLosses: now.Losses - last.Losses,
		NewRetransmits: now.Retransmissions - last.Retransmissions,
	}
}
