// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A round is a time with clients and events, then a checkpoint without any.
type round struct {
	Number  int
	Clients []clientPlan
	Events  []event
}

// clientPlan is one client: when it starts, and what it does.
type clientPlan struct {
	ID      int
	At      time.Duration // in its round
	Kind    string
	From    string // the host that it runs on
	IPv6    bool
	Control string        // "": the namespace's
	Bytes   int           // to send, or of an answer
	Lives   time.Duration // for kinds that stay
}

func (c clientPlan) String() string {
	family := "IPv4"
	if c.IPv6 {
		family = "IPv6"
	}
	control := cmp.Or(c.Control, "default")
	return fmt.Sprintf("%6.2fs client %d: %s from %s, %s, %s, %d B, %v", c.At.Seconds(), c.ID,
		c.Kind, c.From, family, control, c.Bytes, c.Lives)
}

// event is one change of paths or hosts. Its value means what its kind needs.
type event struct {
	At    time.Duration // in its round; later if the one before takes longer
	Kind  string
	Host  string
	Value int
	Text  string
}

func (e event) String() string {
	return strings.TrimRight(fmt.Sprintf("%6.2fs %s %s %d %s", e.At.Seconds(), e.Kind, e.Host,
		e.Value, e.Text), " ")
}

// Kinds of clients.
const (
	bulk      = "bulk"       // sends for a time, and compares what the server received
	download  = "download"   // receives for a time
	rpc       = "rpc"        // 200 B, an answer, a pause
	idle      = "idle"       // sends a little, then nothing
	aborted   = "aborted"    // sends, and resets the connection
	reset     = "reset"      // the server resets it
	halfClose = "half-close" // ends its side, then receives
	short     = "short"      // many connections, one after the other
	udp       = "udp"        // datagrams that come back
	web       = "web"        // curl, if it is installed
	iperf     = "iperf3"     // if it is installed
)

// weights says how often a kind comes.
var weights = []struct {
	kind   string
	weight int
}{
	{bulk, 5}, {download, 2}, {rpc, 4}, {idle, 3}, {aborted, 3}, {reset, 2}, {halfClose, 2},
	{short, 2}, {udp, 2}, {web, 2}, {iperf, 1},
}

// Kinds of events.
const (
	setLoss    = "loss"    // packets in 100,000
	setReorder = "reorder" // packets in 100,000 take the slow link
	setRate    = "rate"    // of the bottleneck, in percent of its full one
	setMTU     = "mtu"
	flap       = "flap"  // the bottleneck's link is down for ms
	route      = "route" // the path from the clients' host: 0 by eth0, 1 by eth1
	upgrade    = "up"
	downUp     = "down-up"
	killUp     = "kill-up"     // kill -9 after ms
	killServe  = "kill-serve"  // of the metrics
	delDevice  = "del-device"  // eth1, while programs are attached to it
	delNS      = "del-ns"      // the guest
	clockStep  = "clock-step"  // ms; in the microVM only
	offlineCPU = "offline-cpu" // for ms; in the microVM only
)

// Hosts: network namespaces.
const (
	clientHost = "client"
	routerHost = "router"
	serverHost = "server"
	guestHost  = "guest"
)

// planner makes rounds. Equal seeds and options give equal rounds.
type planner struct {
	Seed    uint64
	Length  time.Duration // of a round's part with clients
	Stay    time.Duration // what clients' lives are shares of
	Every   time.Duration // between events
	Clients int           // of a round
	Clock   bool          // whether the clock may be stepped
	CPU     bool          // whether a CPU may go offline
}

// eventKinds are drawn like cards: each comes once before one comes again.
func (p planner) eventKinds() []string {
	kinds := []string{
		setLoss, setReorder, setRate, setMTU, flap, route, upgrade, upgrade, downUp, killUp, killUp,
		killServe, delDevice, delNS,
	}
	if p.Clock {
		kinds = append(kinds, clockStep)
	}
	if p.CPU {
		kinds = append(kinds, offlineCPU)
	}
	return kinds
}

func (p planner) round(n int) round {
	random := rand.New(rand.NewPCG(p.Seed, uint64(n)))
	r := round{Number: n}
	for i := range p.Clients {
		at := time.Duration(random.Int64N(int64(p.Length) * 3 / 4))
		if i < p.Clients/3 {
			at /= 4 // so that events meet many
		}
		r.Clients = append(r.Clients, p.client(random, at))
	}
	slices.SortStableFunc(r.Clients, func(a, b clientPlan) int { return int(a.At - b.At) })
	for i := range r.Clients {
		r.Clients[i].ID = n*10_000 + i
	}
	var deck []string
	for at := p.Every; at < p.Length; at += p.Every {
		if len(deck) == 0 {
			deck = p.eventKinds()
			random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		r.Events = append(r.Events, p.event(random, at, deck[0]))
		deck = deck[1:]
	}
	return r
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func (p planner) client(random *rand.Rand, at time.Duration) clientPlan {
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	n, kind := random.IntN(total), ""
	for _, w := range weights {
		if n -= w.weight; n < 0 {
			kind = w.kind
			break
		}
	}
	c := clientPlan{
		At: at, Kind: kind, From: pick(random, clientHost, clientHost, clientHost, guestHost),
		IPv6:    random.IntN(2) == 1,
		Control: pick(random, "pcn", "pcn", "pcn", "ldcp", "pcn_dctcp", "cubic"),
		Bytes:   pick(random, 100, 1_000, 20_000, 100_000, 1_000_000),
		Lives:   p.Stay/8 + time.Duration(random.Int64N(int64(p.Stay)/2)),
	}
	if kind == iperf || kind == web { // these run beside the hosts' namespaces' other clients
		c.From = clientHost
	}
	if c.From == guestHost && random.IntN(2) == 0 {
		c.Control = ""
	}
	return c
}

func (p planner) event(random *rand.Rand, at time.Duration, kind string) event {
	e := event{At: at, Kind: kind}
	switch kind {
	case setLoss:
		e.Host = pick(random, "to-server", "to-client")
		e.Value = pick(random, 0, 10, 100, 1000, 5000)
	case setReorder:
		e.Value = pick(random, 0, 10, 100, 1000)
	case setRate:
		e.Value = pick(random, 10, 25, 50, 100)
	case setMTU:
		e.Value = pick(random, 1280, 1400, 1500, 9000)
	case flap:
		e.Value = pick(random, 50, 300, 1000, 2000)
	case route:
		e.Value = random.IntN(2)
	case upgrade:
		e.Host = pick(random, clientHost, clientHost, serverHost, routerHost)
		e.Value = int(random.Uint32())
	case downUp:
		e.Host, e.Value = clientHost, int(random.Uint32())
	case killUp:
		e.Host, e.Value = pick(random, clientHost, clientHost, serverHost, routerHost),
			random.IntN(700)
		e.Text = fmt.Sprint(random.Uint32())
	case killServe:
		e.Host = pick(random, clientHost, serverHost, routerHost)
	case offlineCPU:
		e.Value = pick(random, 100, 1000, 5000)
	case clockStep:
		e.Value = pick(random, -3_600_000, -1000, 1000, 3_600_000)
	}
	return e
}

// hostConfig returns a host's configuration. The variant chooses its parameters, and 0 the usual
// ones. The client's host has eth1 only if the device is there.
func hostConfig(host string, variant uint32, eth1 bool) string {
	random := rand.New(rand.NewPCG(uint64(variant), 0))
	if variant == 0 {
		random = nil
	}
	choose := func(from ...string) string {
		if random == nil {
			return from[0]
		}
		return pick(random, from...)
	}
	devices := "[eth0, eth1]"
	if !eth1 {
		devices = "[eth0]"
	}
	np := fmt.Sprintf("np: {interfaces: %s, T: %s, congested_share: %s, idle: 2s, "+
		"udp_ports: [%d]}\n", devices, choose("2ms", "1ms", "5ms"), choose("0.95", "0.9"), udpPort)
	switch host {
	case routerHost:
		return fmt.Sprintf("wred: {interfaces: [b0], kmin: %s, kmax: 200KB, k: 0, pmax: %s}\n",
			choose("50KB", "20KB", "100KB"), choose("0.2", "0.05", "1"))
	case serverHost:
		return np
	default:
		stamp := fmt.Sprintf("stamp: {interfaces: %s}\n", devices)
		return "line_rate: 200Mbps\nrtt: " + choose("2ms", "1ms", "5ms") + "\n" +
			"controls:\n  pcn: {w_min: " + choose("1/128", "1/64") + ", feedback: " +
			choose("auto", "cnp", "ack", "ece") + ", max_flows: " +
			choose("65536", "65536", "65536", "1024") + "}\n" +
			"  ldcp: {alpha: " + choose("1", "1/2") + "}\n  pcn_dctcp: {g: " +
			choose("1/16", "1/32") + "}\n" + np +
			"rp: {interfaces: " + devices + ", cnp_burst: " + choose("8", "4") + "}\n" +
			choose(stamp, stamp, "")
	}
}
