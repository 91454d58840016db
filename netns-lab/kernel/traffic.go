// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/pcn-linux/pcn/loader"
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
	if err := t.forgetPriming(f); err != nil {
		return err
	}
	for _, b := range f.plan.exp.Bursts {
		if err := t.bursts.open(b, len(t.streams)); err != nil {
			return fmt.Errorf("burst %s: %w", b.Name, err)
		}
	}
	if err := f.arrive.Track(t.keys()); err != nil {
		return err
	}
	return t.bursts.openSockets(f.nodes)
}

// forgetPriming has NP forget what it saw of the flows.
func (t *traffic) forgetPriming(f *fabric) error {
	if f.np == nil {
		return nil
	}
	for _, s := range t.streams {
		if err := f.np.Forget(s.key); err != nil {
			return fmt.Errorf("flow %s: %w", s.Name, err)
		}
	}
	return nil
}

// keys returns the keys and the ids of all flows, in the order of the ids.
func (t *traffic) keys() (keys []loader.FlowKey, ids []uint32) {
	for _, s := range t.streams {
		keys, ids = append(keys, s.key), append(ids, s.id)
	}
	for _, b := range t.bursts.flows {
		keys, ids = append(keys, b.key), append(ids, b.id)
	}
	return keys, ids
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
