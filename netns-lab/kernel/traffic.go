// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// traffic is all flows of a run. Flow ids count streams first, then bursts.
type traffic struct {
	streams []*stream
	bursts  *bursts
	senders senders
}

// newTraffic connects the flows; nothing is sent yet.
func newTraffic(ctx context.Context, f *fabric) (*traffic, error) {
	flows, addresses := f.plan.exp.Flows, newAddresses(f.plan)
	t := &traffic{
		bursts:  &bursts{plan: f.plan, clock: f.clock, addresses: addresses},
		senders: newSenders(f, len(flows)),
	}
	// two sockets and a timer a flow, and a message's socket
	if err := allowFiles(3*len(flows) + int(f.plan.flows())); err != nil {
		return nil, err
	}
	c := &connector{
		plan: f.plan, nodes: f.nodes, control: f.control.Name(),
		buffers: buffersFor(len(flows)), addresses: addresses,
	}
	if err := t.open(ctx, f, c); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// open opens all sockets. If it fails, t has those that were opened.
func (t *traffic) open(ctx context.Context, f *fabric, c *connector) error {
	for i, flow := range f.plan.exp.Flows {
		s := &stream{Flow: flow, id: uint32(i)}
		t.streams = append(t.streams, s) // before it is complete, so that close closes it
		if err := c.connect(ctx, s); err != nil {
			return fmt.Errorf("flow %s: %w", flow.Name, err)
		}
	}
	if err := openWindows(t.streams); err != nil {
		return err
	}
	if err := t.senders.pacing.prime(ctx, t.streams); err != nil {
		return err
	}
	for _, s := range t.streams {
		if err := t.begin(f, s); err != nil {
			return fmt.Errorf("flow %s: %w", s.Name, err)
		}
	}
	for _, b := range f.plan.exp.Bursts {
		if err := t.bursts.open(b, len(t.streams), f.arrive.Track); err != nil {
			return fmt.Errorf("burst %s: %w", b.Name, err)
		}
	}
	return t.bursts.openSockets(f.nodes)
}

// begin forgets what NP saw of a flow's priming, and starts counting it.
func (t *traffic) begin(f *fabric, s *stream) error {
	if f.np != nil {
		if err := f.np.Forget(s.key); err != nil {
			return err
		}
	}
	return f.arrive.Track(s.key, s.id)
}

// close resets the connections, so that nothing unsent is sent, and waits for the goroutines.
func (t *traffic) close() error {
	var errs []error
	shut := func(c io.Closer) {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, s := range t.streams {
		if s.send != nil {
			errs = append(errs, s.send.SetLinger(0))
			shut(s.send)
		}
		if s.receive != nil {
			shut(s.receive)
		}
	}
	for _, socket := range t.bursts.sockets {
		shut(socket)
	}
	if err := errors.Join(append(errs, t.senders.wait())...); err != nil {
		return fmt.Errorf("close flows: %w", err)
	}
	return nil
}
