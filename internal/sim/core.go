// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
)

// core runs the algorithms of switch ports (bpf/port.c), on states in its memory.
type core struct {
	*module
	layout layout

	initPort, initClass, depart, on, ingress, xon         *function
	maySend, sendCredits, receive, release, tick, refresh *function
	look, hear, calm                                      *function

	portBytes, classBytes, ingressBytes uint32
	rate, kmin, kmax                    uint32 // offsets in struct port_state
	alpha, xoff, repeats                uint32 // offsets in struct port_ingress
	said                                saidFields

	ce, ue, feedbackShift uint64 // verdicts
	waited, notECT        uint64 // flags
	calmShift             uint64
	pause, resume         uint64 // actions
	stormed, over         uint64 // what the watchdog found
}

// saidFields are offsets in struct port_state: what detectors said.
type saidFields struct{ npecn, ecn, fecn, tcdCE, tcdUE, state uint32 }

// marking says how the ports of a run mark.
type marking struct {
	rule   string // of [scheme.Setup]
	params []byte // of the rule, in C's layout; nil if it has none
	own    []byte // the module with a rule of the user's own
}

// coreParams are the parameters of all ports.
type coreParams struct {
	marking
	tcd, watch                    bool
	maxTonNs, overBytes, ecnBytes uint64
	fecn                          fecnParams
	xoffBytes, xonOffsetBytes     uint64
	alpha                         float64
	creditBytes, creditPeriodNs   uint64
	watchdog                      *experiment.Watchdog // nil: none
}

type fecnParams struct {
	thresholdBytes    uint64
	packetBytes, rate uint32
	victims           bool
}

func newCore(ctx context.Context, r runtime, p *coreParams) (*core, error) {
	types, err := object("port.o")
	if err != nil {
		return nil, err
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(types))
	if err != nil {
		return nil, fmt.Errorf("read the types of ports: %w", err)
	}
	code := p.own
	if code == nil {
		if code, err = object("port.wasm"); err != nil {
			return nil, err
		}
	}
	m, err := newModule(ctx, r, "port", code)
	if err != nil {
		return nil, err
	}
	c := &core{module: m, layout: layout{spec}}
	return c, errors.Join(c.findFunctions(), c.findFields(), c.configure(p))
}

func (c *core) findFunctions() error {
	f, err := c.need("port_init", "port_class_init", "port_depart", "port_on", "port_ingress",
		"port_xon", "credits_may_send", "credits_send", "credits_receive", "credits_release",
		"credits_tick", "credits_update", "port_class_size", "watchdog_poll", "watchdog_hears",
		"port_calm_bytes")
	if err != nil {
		return err
	}
	c.initPort, c.initClass, c.depart, c.on, c.ingress, c.xon = f[0], f[1], f[2], f[3], f[4], f[5]
	c.maySend, c.sendCredits, c.receive, c.release, c.tick, c.refresh =
		f[6], f[7], f[8], f[9], f[10], f[11]
	c.classBytes = uint32(f[12].call())
	c.look, c.hear, c.calm = f[13], f[14], f[15]
	return nil
}

func (c *core) findFields() error {
	var err1, err2 error
	c.portBytes, err1 = c.layout.size("port_state")
	c.ingressBytes, err2 = c.layout.size("port_ingress")
	o := &offsets{layout: c.layout, name: "port_state"}
	c.rate = o.of("rate_bps")
	c.kmin, c.kmax = o.of("red.kmin_bytes"), o.of("red.kmax_bytes")
	in := &offsets{layout: c.layout, name: "port_ingress"}
	c.alpha, c.repeats = in.of("pfc.alpha"), in.of("repeat.over")
	c.xoff = in.of("pfc.xoff_bytes")
	c.said = saidFields{
		npecn: o.of("said.npecn"), ecn: o.of("said.ecn"), fecn: o.of("said.fecn"),
		tcdCE: o.of("said.tcd_ce"), tcdUE: o.of("said.tcd_ue"), state: o.of("said.tcd_state"),
	}
	errs := []error{err1, err2, o.err, in.err}
	value := func(to *uint64, enum, name string) {
		var err error
		*to, err = c.layout.value(enum, name)
		errs = append(errs, err)
	}
	value(&c.ce, "port_verdict", "PORT_CE")
	value(&c.ue, "port_verdict", "PORT_UE")
	value(&c.feedbackShift, "port_verdict", "PORT_FEEDBACK_SHIFT")
	value(&c.waited, "port_flags", "PORT_WAITED")
	value(&c.notECT, "port_flags", "PORT_NOT_ECT")
	value(&c.calmShift, "port_flags", "PORT_CALM_SHIFT")
	value(&c.pause, "pfc_action", "PFC_PAUSE")
	value(&c.resume, "pfc_action", "PFC_RESUME")
	value(&c.stormed, "pfc_watchdog_verdict", "PFC_WATCHDOG_ACT")
	value(&c.over, "pfc_watchdog_verdict", "PFC_WATCHDOG_END")
	return errors.Join(errs...)
}

// alphaShift is the fixed point of alpha in bpf/algo/pfc.h, creditShift that of credits in cbfc.h.
const (
	alphaShift  = 8
	creditShift = 6
)

// configure writes struct port_params.
func (c *core) configure(p *coreParams) error {
	address, err := c.need("port_params")
	if err != nil {
		return err
	}
	at := uint32(address[0].call())
	o := &offsets{layout: c.layout, name: "port_params"}
	put32 := func(field string, value uint32) { c.put32(at+o.of(field), value) }
	put64 := func(field string, value uint64) { c.put64(at+o.of(field), value) }
	rule := strings.ToUpper(p.rule)
	marker, err := c.layout.value("port_marker", "PORT_MARKER_"+rule)
	if err != nil {
		return fmt.Errorf("switches can't mark by %q: %w", p.rule, err)
	}
	put32("marker", uint32(marker))
	put32("tcd", number(p.tcd))
	put32("watch", number(p.watch))
	put64("max_ton_ns", p.maxTonNs)
	put64("over_bytes", p.overBytes)
	put64("ecn_bytes", p.ecnBytes)
	put64("fecn.threshold_bytes", p.fecn.thresholdBytes)
	put32("fecn.packet_bytes", p.fecn.packetBytes)
	put32("fecn.marking_rate", p.fecn.rate)
	put32("fecn.victims", number(p.fecn.victims))
	put64("pfc.xoff_bytes", p.xoffBytes)
	put64("pfc.xon_offset_bytes", p.xonOffsetBytes)
	put32("pfc.alpha", alphaOf(p.alpha))
	put64("cbfc.buffer_blocks", p.creditBytes>>creditShift)
	put64("cbfc.period_ns", p.creditPeriodNs)
	if d := p.watchdog; d != nil {
		action, err := c.layout.value("pfc_watchdog_action",
			"PFC_WATCHDOG_"+strings.ToUpper(string(d.Action)))
		if err != nil {
			return fmt.Errorf("the watchdog can't do %q: %w", d.Action, err)
		}
		put64("watchdog.poll_ns", uint64(d.Poll))
		put32("watchdog.detect_polls", uint32(d.DetectPolls()))
		put32("watchdog.restore_polls", uint32(d.RestorePolls()))
		put32("watchdog.action", uint32(action))
	}
	if o.err != nil {
		return o.err
	}
	return c.setRule(p.marking, at, o)
}

// setRule writes the parameters of the marking rule.
func (c *core) setRule(m marking, at uint32, o *offsets) error {
	switch {
	case m.params == nil:
		return nil
	case m.rule == scheme.OwnPart:
		address, err := c.need("port_own_params")
		if err != nil {
			return err
		}
		c.write(uint32(address[0].call()), m.params)
		return nil
	}
	c.write(at+o.of(m.rule), m.params)
	return o.err
}

func number(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}

// newPort returns the address of the state of a port.
func (c *core) newPort(seed uint32, rateBps uint64) (uint32, error) {
	at, err := c.alloc(c.portBytes)
	if err != nil {
		return 0, err
	}
	c.initPort.stack[0], c.initPort.stack[1], c.initPort.stack[2] =
		uint64(at), uint64(seed), rateBps
	c.initPort.call()
	return at, nil
}

// newClass returns the addresses of the states of a class at the two ends of a link.
func (c *core) newClass() (class, ingress uint32, err error) {
	if class, err = c.alloc(c.classBytes); err != nil {
		return 0, 0, err
	}
	if ingress, err = c.alloc(c.ingressBytes); err != nil {
		return 0, 0, err
	}
	c.initClass.stack[0], c.initClass.stack[1] = uint64(class), uint64(ingress)
	c.initClass.call()
	return class, ingress, nil
}

// mostCalm is how many packets a port lets go, at most, until it asks about one again.
const mostCalm = 1 << 16

// calmBytes returns how long a port's queue must be, or the core need not hear of its packets.
func (c *core) calmBytes(port uint32) uint32 {
	c.calm.stack[0] = uint64(port)
	return uint32(min(c.calm.call(), math.MaxUint32))
}

// judge returns the verdict on a packet that starts: ce, ue, or QCN's feedback.
func (c *core) judge(now int64, p *port, q *queue, k *packet, waited, wred bool) uint64 {
	flags := uint64(p.calm) << c.calmShift
	p.calm = 0
	if waited {
		flags |= c.waited
	}
	if wred && k.ecn == ecnNone {
		flags |= c.notECT
	}
	s := &c.depart.stack
	s[0], s[1], s[2], s[3] = uint64(p.core), uint64(q.core), uint64(now), uint64(now-k.arrived)
	s[4], s[5], s[6], s[7] = q.bytes, uint64(q.packets), uint64(k.size), flags
	return c.depart.call()
}

// goOn tells of the end of a queue's OFF.
func (c *core) goOn(now int64, q *queue) {
	s := &c.on.stack
	s[0], s[1], s[2], s[3] = uint64(q.core), uint64(now), uint64(q.packets), q.bytes
	c.on.call()
}

// check returns what an ingress port does about what it holds, and how many PAUSE frames a switch
// that repeats them would have sent by the timer at an address.
func (c *core) check(
	now int64, q *queue, timer uint32, enters bool, freeBytes uint64,
) (action, frames uint64) {
	s := &c.ingress.stack
	s[0], s[1], s[2], s[3] =
		uint64(timer), uint64(now), uint64(number(enters)), uint64(number(q.pausing))
	s[4], s[5] = q.held, freeBytes
	said := c.ingress.call()
	return said & 0xff, said >> 8 & 0xffffff
}

// lookAt has the watchdog look at a queue. It returns stormed, over, or another value.
func (c *core) lookAt(now int64, q *queue) uint64 {
	s := &c.look.stack
	s[0], s[1], s[2] = uint64(q.ingress), uint64(now), uint64(number(q.paused))
	s[3] = uint64(q.pausedSince)
	return c.look.call()
}

// hears tells the watchdog of a PAUSE or a RESUME for a queue that does not obey.
func (c *core) hears(now int64, q *queue, pause bool) {
	s := &c.hear.stack
	s[0], s[1], s[2] = uint64(q.ingress), uint64(now), uint64(number(pause))
	c.hear.call()
}

// endRepeats returns how many PAUSE frames a switch that repeats them would have sent up to now,
// and has it send no more for what an ingress port holds.
func (c *core) endRepeats(now int64, q *queue) (frames uint64) {
	_, frames = c.check(now, q, q.ingress, false, 0)
	c.put32(q.ingress+c.repeats, 0)
	if len(q.pairs) > 0 {
		frames = 0
	}
	for _, p := range q.pairs {
		_, more := c.check(now, q, p.core, false, 0)
		c.put32(p.core+c.repeats, 0)
		frames += more
	}
	return frames
}

// newTimer returns the address of a struct port_ingress like that at another.
func (c *core) newTimer(like uint32) (uint32, error) {
	at, err := c.alloc(c.ingressBytes)
	if err == nil {
		c.write(at, c.bytes(like, c.ingressBytes))
	}
	return at, err
}

// xonBytes returns the threshold of a RESUME of an ingress port with so many bytes free.
func (c *core) xonBytes(ingress uint32, freeBytes uint64) uint64 {
	c.xon.stack[0], c.xon.stack[1] = uint64(ingress), freeBytes
	return c.xon.call()
}

// setMarking gives a port its own thresholds of RED.
func (c *core) setMarking(port uint32, kminBytes, kmaxBytes uint64) {
	c.put64(port+c.kmin, kminBytes)
	c.put64(port+c.kmax, kmaxBytes)
}

// setAlpha gives an ingress port its own share of the free buffer.
func (c *core) setAlpha(ingress uint32, alpha float64) {
	c.put32(ingress+c.alpha, alphaOf(alpha))
}

// setXOFF gives an ingress port its own static threshold.
func (c *core) setXOFF(ingress uint32, bytes uint64) { c.put64(ingress+c.xoff, bytes) }

// alphaOf returns alpha as C has it.
func alphaOf(alpha float64) uint32 { return uint32(math.Round(alpha * (1 << alphaShift))) }

// may reports whether there are credits for a packet.
func (c *core) may(q *queue, size uint32) bool {
	c.maySend.stack[0], c.maySend.stack[1] = uint64(q.core), uint64(size)
	return c.maySend.call()&1 != 0
}

func (c *core) spend(q *queue, size uint32) {
	c.sendCredits.stack[0], c.sendCredits.stack[1] = uint64(q.core), uint64(size)
	c.sendCredits.call()
}

func (c *core) takeIn(q *queue, size uint32) {
	c.receive.stack[0], c.receive.stack[1] = uint64(q.ingress), uint64(size)
	c.receive.call()
}

// free returns the blocks of a packet that leaves.
func (c *core) free(q *queue, size uint32) uint64 {
	c.release.stack[0], c.release.stack[1] = uint64(q.ingress), uint64(size)
	return c.release.call()
}

// tickAfter returns the end of the update period.
func (c *core) tickAfter(now int64) int64 {
	c.tick.stack[0] = uint64(now)
	return int64(c.tick.call())
}

func (c *core) update(q *queue, blocks uint64) {
	c.refresh.stack[0], c.refresh.stack[1] = uint64(q.core), blocks
	c.refresh.call()
}
