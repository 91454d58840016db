// SPDX-License-Identifier: Apache-2.0

// Command raft is a node of a cluster that elects a leader by etcd's Raft, and the judge of what
// the nodes did. Tests run it on hosts of a network. A leader may answer reads alone while it holds
// a lease: it heard from most nodes so lately that no other can be the leader.
//
//	raft node SELF PEERS... [-lease TICKS]
//	raft judge NODES...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

const (
	tick           = 10 * time.Millisecond
	electionTicks  = 20
	heartbeatTicks = 3
	// safeLease is below the time for which a node that hears a leader elects no other. With a bug
	// in this timeout there is a lease of the old leader when the next has one.
	safeLease = 18
	port      = 7000
)

// Held is a lease that a node held, in ns.
type Held struct {
	Node        uint64
	Term        uint64
	From, Until int64
}

func main() {
	run := judge
	if os.Args[1] == "node" {
		run = serve
	}
	if err := run(os.Args[2:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// node is one of the cluster. One goroutine runs it, so it needs no locks.
type node struct {
	id      uint64
	raft    *raft.RawNode
	storage *raft.MemoryStorage
	peers   map[uint64]*net.UDPAddr
	socket  *net.UDPConn
	lease   time.Duration
	// of the leader: when it sent the last heartbeat, and the last one that was answered
	sent, answered map[uint64]time.Time
	held           []Held
}

// serve runs a node: its address is that of its host, and so are its peers'.
func serve(args []string) error {
	lease := safeLease
	if i := slices.Index(args, "-lease"); i >= 0 {
		if _, err := fmt.Sscan(args[i+1], &lease); err != nil {
			return fmt.Errorf("-lease: %w", err)
		}
		args = args[:i]
	}
	n := &node{
		storage: raft.NewMemoryStorage(), peers: map[uint64]*net.UDPAddr{},
		lease: time.Duration(lease) * tick,
		sent:  map[uint64]time.Time{}, answered: map[uint64]time.Time{},
	}
	var voters []raft.Peer
	for i, host := range args[1:] {
		id := uint64(i + 1)
		address, err := net.ResolveUDPAddr("udp4", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			return err
		}
		n.peers[id], voters = address, append(voters, raft.Peer{ID: id})
		if host == args[0] {
			n.id = id
		}
	}
	if n.id == 0 {
		return fmt.Errorf("%s is none of %v", args[0], args[1:])
	}
	var err error
	if n.socket, err = net.ListenUDP("udp4", &net.UDPAddr{Port: port}); err != nil {
		return err
	}
	n.raft, err = raft.NewRawNode(&raft.Config{
		ID: n.id, ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks, Storage: n.storage,
		MaxSizePerMsg: 1200, MaxInflightMsgs: 16, CheckQuorum: true, PreVote: true,
		Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
	})
	if err != nil {
		return err
	}
	if err := n.raft.Bootstrap(voters); err != nil {
		return err
	}
	return n.run()
}

// run has the node live for ever.
func (n *node) run() error {
	came, asked := make(chan *raftpb.Message), make(chan chan []Held)
	go func() {
		buffer := make([]byte, 2000)
		for {
			size, _, err := n.socket.ReadFromUDP(buffer)
			if err != nil {
				continue
			}
			m := &raftpb.Message{}
			if proto.Unmarshal(buffer[:size], m) == nil {
				came <- m
			}
		}
	}()
	http.HandleFunc("/held", func(w http.ResponseWriter, _ *http.Request) {
		answer := make(chan []Held)
		asked <- answer
		_ = json.NewEncoder(w).Encode(<-answer)
	})
	go func() { panic(http.ListenAndServe(fmt.Sprintf(":%d", port), nil)) }()
	for ticks := time.Tick(tick); ; {
		select {
		case <-ticks:
			n.raft.Tick()
		case m := <-came:
			n.step(m)
		case answer := <-asked:
			answer <- n.held
			continue
		}
		n.send()
		n.renew()
	}
}

// step takes a message in. An answer to a heartbeat says that the node was heard when it sent it.
func (n *node) step(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgHeartbeatResp && m.GetTerm() == n.raft.BasicStatus().GetTerm() {
		n.answered[m.GetFrom()] = n.sent[m.GetFrom()]
	}
	_ = n.raft.Step(m) // one of an old term is none
}

// send stores and sends what Raft has ready.
func (n *node) send() {
	for n.raft.HasReady() {
		ready := n.raft.Ready()
		if !raft.IsEmptyHardState(ready.HardState) {
			_ = n.storage.SetHardState(ready.HardState)
		}
		_ = n.storage.Append(ready.Entries)
		for _, m := range ready.Messages {
			if m.GetType() == raftpb.MsgHeartbeat {
				n.sent[m.GetTo()] = time.Now()
			}
			if data, err := proto.Marshal(m); err == nil {
				_, _ = n.socket.WriteToUDP(data, n.peers[m.GetTo()])
			}
		}
		for _, e := range ready.CommittedEntries {
			if e.GetType() == raftpb.EntryConfChange {
				change := &raftpb.ConfChange{}
				if proto.Unmarshal(e.GetData(), change) == nil {
					n.raft.ApplyConfChange(change)
				}
			}
		}
		n.raft.Advance(ready)
	}
}

// renew has a leader hold its lease from when most nodes, itself among them, last heard of it.
func (n *node) renew() {
	status := n.raft.BasicStatus()
	if status.RaftState != raft.StateLeader {
		clear(n.sent)
		clear(n.answered)
		if last := len(n.held) - 1; last >= 0 { // it leads no more
			n.held[last].Until = min(n.held[last].Until, time.Now().UnixNano())
		}
		return
	}
	now := time.Now()
	heard := []time.Time{now}
	for id := range n.peers {
		if id != n.id {
			heard = append(heard, n.answered[id])
		}
	}
	slices.SortFunc(heard, func(a, b time.Time) int { return b.Compare(a) })
	most := heard[len(heard)/2]
	until := most.Add(n.lease)
	if most.IsZero() || until.Before(now) {
		return
	}
	last := len(n.held) - 1
	if last < 0 || n.held[last].Term != status.GetTerm() || n.held[last].Until < now.UnixNano() {
		n.held = append(n.held, Held{Node: n.id, Term: status.GetTerm(), From: now.UnixNano()})
		last++
	}
	n.held[last].Until = until.UnixNano()
}

// judge asks all nodes, and fails if two held a lease at a time, or none does now.
func judge(nodes []string) error {
	var all []Held
	for _, host := range nodes {
		answer, err := http.Get(fmt.Sprintf("http://%s:%d/held", host, port))
		if err != nil {
			return err
		}
		var held []Held
		err = json.NewDecoder(answer.Body).Decode(&held)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return err
		}
		all = append(all, held...)
	}
	slices.SortFunc(all, func(a, b Held) int { return int(a.From - b.From) })
	for _, h := range all {
		fmt.Printf("node %d, term %d: %.3f to %.3f s\n", h.Node, h.Term, seconds(h.From),
			seconds(h.Until))
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if b.From < a.Until && a.Node != b.Node {
				return fmt.Errorf("nodes %d and %d hold leases at %.3f s", a.Node, b.Node,
					seconds(b.From))
			}
		}
	}
	if len(all) == 0 || all[len(all)-1].Until < time.Now().UnixNano() {
		return errors.New("no node holds a lease")
	}
	return nil
}

// seconds is a time of the clock in seconds from the minute's start.
func seconds(ns int64) float64 { return float64(ns%60e9) / 1e9 }
