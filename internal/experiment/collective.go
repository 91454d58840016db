// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"

	"github.com/pcn-linux/pcn/config"
)

// Collectives holds the collective operations of an experiment: a file has one or a list of them.
type Collectives []Collective

// OneOrMore implements [config.OneOrMore].
func (Collectives) OneOrMore() {}

// Collective is a collective operation of the hosts of a job, such as an all-reduce. Each pair of
// ranks that exchanges data has one TCP flow, which carries all its messages, one after the other.
// The flow from H0 to H1 of collective c is c-H0-H1, and its group is c.
type Collective struct {
	// Name is unique in the file. Default "c"; required in a list of several.
	Name string `yaml:"name"`
	// Kind is the operation and its algorithm. Required.
	Kind CollectiveKind `yaml:"kind"`
	// Ranks are the hosts of the ranks, rank 0 first. 2 to 4096. Required.
	Ranks NodeList `yaml:"ranks"`
	// Size is the length of the vector: of what each rank has before a reduction, has after an
	// all-gather, or sends in an all-to-all, its part for itself included. Required.
	Size Bytes `yaml:"size"`
	// Chunks is how many parts the data of a step is in: a rank passes one on when it has arrived.
	// 1 to 1024, default 1. All-to-all has none.
	Chunks int `yaml:"chunks"`
	// Priority is that of the flows' data: see [FlowGroup].
	Priority int `yaml:"priority"`
	// Start is when the ranks start. From -warmup to the end of the run, default 0.
	Start Duration `yaml:"start"`
	// After is what all ranks wait for, in place of Start.
	After After `yaml:"after"`
	// Rounds is how often the operation runs. A rank starts a round when it has all data of the one
	// before. 1 to 10000, default 1.
	Rounds int `yaml:"rounds"`
	// Compute is how long each rank computes before each round. Default 0.
	Compute Duration `yaml:"compute"`
	// Stragglers are ranks that compute longer.
	Stragglers []Straggler `yaml:"stragglers"`
}

// Straggler is a rank that computes longer than others.
type Straggler struct {
	// Host is that of the rank. Required.
	Host string `yaml:"host"`
	// Late is how much longer it computes, in each round. Required.
	Late Duration `yaml:"late"`
}

// CollectiveKind is a collective operation and its algorithm.
type CollectiveKind string

// The kinds.
const (
	// RingAllReduce leaves the sum of all ranks' vectors with each: 2 (n - 1) steps, in each of
	// which a rank sends 1/n of the vector to the next.
	RingAllReduce CollectiveKind = "ring-all-reduce"
	// TreeAllReduce does it by two binary trees, each for half of the vector: it goes up to a root,
	// and the sum comes down. Inner ranks of one tree are leaves of the other, as Sanders, Speck
	// and Träff (Parallel Computing, 2009) have it, and NCCL: so all ranks receive two vectors.
	TreeAllReduce CollectiveKind = "tree-all-reduce"
	// ReduceScatter is the first half of RingAllReduce: each rank has 1/n of the sum then.
	ReduceScatter CollectiveKind = "reduce-scatter"
	// AllGather is the second half: each rank has 1/n of a vector before, and all of it then.
	AllGather CollectiveKind = "all-gather"
	// AllToAll has each rank send 1/n of its vector to each other. In step k rank r sends to rank
	// r + k; a rank's step begins when what it sent and what it was sent before has arrived.
	AllToAll CollectiveKind = "all-to-all"
)

func collectiveKinds() []CollectiveKind {
	return []CollectiveKind{RingAllReduce, TreeAllReduce, ReduceScatter, AllGather, AllToAll}
}

// Bounds that keep a typing error from taking all memory.
const (
	maxRanks    = 4096
	maxChunks   = 1024
	maxRounds   = 10_000
	maxMessages = 4_000_000 // of an experiment's collectives
)

// defaultCollective is the name of the only collective of a file.
const defaultCollective = "c"

// fillCollective sets the defaults of the i-th collective.
func (d *decoder) fillCollective(e *Experiment, i int) {
	c, path := &e.Collectives[i], fmt.Sprintf("collective[%d].", i)
	if !d.has(path+"name") && len(e.Collectives) == 1 {
		c.Name = defaultCollective
	}
	if d.has(path+"after") && !d.has(path+"start") {
		c.Start = -e.Warmup // what it waits for may arrive before t = 0
	}
	for key, n := range map[string]*int{"chunks": &c.Chunks, "rounds": &c.Rounds} {
		if !d.has(path + key) {
			*n = 1
		}
	}
}

// collectiveNamed returns a collective; nil if there is none of this name.
func (e *Experiment) collectiveNamed(name string) *Collective {
	i := slices.IndexFunc(e.Collectives, func(c Collective) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &e.Collectives[i]
}

func (d *decoder) validateCollectives(e *Experiment) {
	messages := 0
	for i := range e.Collectives {
		before := len(d.Errs)
		d.validateCollective(e, i)
		if len(d.Errs) > before {
			continue
		}
		c := &e.Collectives[i]
		if messages += c.messages(); messages > maxMessages {
			d.fail(fmt.Sprintf("collective[%d]", i), fmt.Sprintf("%d messages are too many",
				messages), fmt.Sprintf("at most %d: choose fewer ranks, chunks or rounds",
				maxMessages))
			return
		}
	}
}

func (d *decoder) validateCollective(e *Experiment, i int) {
	c, path := e.Collectives[i], fmt.Sprintf("collective[%d].", i)
	if c.Name != defaultCollective || len(e.Collectives) > 1 {
		d.checkName(path+"name", c.Name, objectName, "letters, digits, \"_\" and \"-\"")
	}
	if d.hasRequired(path, "kind") {
		d.checkKnown(path+"kind", "collective", string(c.Kind), toStrings(collectiveKinds()))
	}
	if d.hasRequired(path, "ranks") {
		d.checkAllKnown(path+"ranks", "host", c.Ranks, d.hosts)
		d.checkUnique(path+"ranks", "rank's host", c.Ranks)
		if n := len(c.Ranks); n < 2 || n > maxRanks {
			d.fail(path+"ranks", fmt.Sprintf("%d ranks are out of range", n),
				fmt.Sprintf("2 to %d", maxRanks))
		}
	}
	if d.hasRequired(path, "size") {
		config.InRange(d.Decoder, path+"size", c.Size, 1, 1e12)
	}
	config.CountInRange(d.Decoder, path+"chunks", c.Chunks, 1, maxChunks)
	if c.Kind == AllToAll && c.Chunks > 1 {
		d.fail(path+"chunks", "an all-to-all passes nothing on, so it has no chunks",
			"remove chunks:")
	}
	config.CountInRange(d.Decoder, path+"rounds", c.Rounds, 1, maxRounds)
	config.InRange(d.Decoder, path+"compute", c.Compute, 0, maxDuration)
	d.validatePriority(e, path+"priority", c.Priority)
	if d.has(path+"after") && d.has(path+"start") {
		d.fail(path+"start", "\"start\" and \"after\" are both given", "keep one of them")
	}
	if e.Duration > 0 {
		config.InRange(d.Decoder, path+"start", c.Start, -e.Warmup, e.Duration-1)
	}
	d.validateStragglers(path, c)
}

func (d *decoder) validateStragglers(path string, c Collective) {
	var hosts []string
	for i, s := range c.Stragglers {
		at := fmt.Sprintf("%sstragglers[%d].", path, i)
		if d.hasRequired(at, "host") {
			d.checkKnown(at+"host", "rank's host", s.Host, c.Ranks)
		}
		if d.hasRequired(at, "late") {
			config.InRange(d.Decoder, at+"late", s.Late, 0, maxDuration)
		}
		if slices.Contains(hosts, s.Host) {
			d.fail(at+"host", fmt.Sprintf("duplicate straggler %q", s.Host), "keep one of them")
		}
		hosts = append(hosts, s.Host)
	}
}

// computes returns how long a rank computes before a round.
func (c *Collective) computes(rank int) Duration {
	for _, s := range c.Stragglers {
		if s.Host == c.Ranks[rank] {
			return c.Compute + s.Late
		}
	}
	return c.Compute
}

// messages returns how many messages all ranks send in all rounds.
func (c *Collective) messages() int {
	n := len(c.Ranks)
	perRound := map[CollectiveKind]int{
		RingAllReduce: 2 * n * (n - 1), TreeAllReduce: 2 * 2 * (n - 1),
		ReduceScatter: n * (n - 1), AllGather: n * (n - 1), AllToAll: n * (n - 1),
	}[c.Kind]
	return perRound * c.Chunks * c.Rounds
}

// messageBytes returns the length of each message: parts are equal, rounded up to whole bytes.
func (c *Collective) messageBytes() Bytes {
	parts := Bytes(c.Chunks * len(c.Ranks))
	if c.Kind == TreeAllReduce {
		parts = Bytes(2 * c.Chunks) // of two trees
	}
	return (c.Size + parts - 1) / parts
}

// addCollectives makes the flows of the collectives, and what their messages wait for. It does
// nothing if the file has a mistake.
func (d *decoder) addCollectives(e *Experiment) {
	if len(d.Errs) > 0 {
		d.unsure["flow"] = d.unsure["flow"] || len(e.Collectives) > 0
		return
	}
	for i := range e.Collectives {
		(&schedule{e: e, c: &e.Collectives[i], flows: map[connection]int32{}}).build()
	}
}

// connection is what has a flow of its own: two ranks, in one of the trees.
type connection struct {
	from, to int
	tree2    bool
}

// schedule builds the flows of a collective message by message.
type schedule struct {
	e     *Experiment
	c     *Collective
	flows map[connection]int32 // index of the flow
	round int
	tree2 bool     // messages are of the second tree
	ready [][]Part // by rank: what it has received in the round before
	heard [][]Part // and in this
}

func (s *schedule) build() {
	n := len(s.c.Ranks)
	s.ready = make([][]Part, n)
	for s.round = range s.c.Rounds {
		s.heard = make([][]Part, n)
		switch s.c.Kind {
		case RingAllReduce:
			s.ring(2 * (n - 1))
		case ReduceScatter, AllGather:
			s.ring(n - 1)
		case TreeAllReduce:
			s.trees()
		case AllToAll:
			s.pairwise()
		}
		s.ready = s.heard
	}
}

// ring has each rank send to the next in each step what it got in the step before.
func (s *schedule) ring(steps int) {
	n, chunks := len(s.c.Ranks), s.c.Chunks
	got := make([]Part, n*chunks) // by rank and chunk, in the step before
	for step := range steps {
		next := make([]Part, n*chunks)
		for r := range n {
			to := (r + 1) % n
			for k := range chunks {
				at := to*chunks + k
				switch {
				case step > 0:
					next[at] = s.send(r, to, got[r*chunks+k])
				case k == 0:
					next[at] = s.begin(r, to)
				default:
					next[at] = s.send(r, to)
				}
			}
		}
		got = next
	}
}

// trees sends each chunk of a half up a tree as soon as it has come from all children, and down as
// soon as it has come from the parent. The second tree is the first, with ranks in reverse, or one
// further if their number is odd.
func (s *schedule) trees() {
	n := len(s.c.Ranks)
	first := func(place int) int { return place }
	second := func(place int) int { return n - 1 - place }
	if n%2 == 1 {
		second = func(place int) int { return (place + 1) % n }
	}
	for k := range s.c.Chunks {
		s.tree2 = false
		s.tree(first, k == 0)
		s.tree2 = true
		s.tree(second, k == 0)
	}
}

// tree sends a chunk up the tree and down. rank is who has a place in it.
func (s *schedule) tree(rank func(place int) int, isFirst bool) {
	n := len(s.c.Ranks)
	send := s.send
	if isFirst {
		send = s.begin
	}
	order := treeOrder(n)
	waitsFor := make([][]Part, n) // by place: to have the sum of the places below, then of all
	for _, place := range slices.Backward(order[1:]) {
		parent := treeParent(place, n)
		waitsFor[parent] = append(waitsFor[parent],
			send(rank(place), rank(parent), waitsFor[place]...))
	}
	for _, place := range order[1:] {
		parent := treeParent(place, n)
		waitsFor[place] = []Part{s.send(rank(parent), rank(place), waitsFor[parent]...)}
	}
}

// treeParent returns the parent of a place in a binary tree whose inner places are even. Place 0,
// the root, has none.
func treeParent(place, n int) int {
	lowest := place & -place
	if parent := place ^ lowest | lowest<<1; parent < n {
		return parent
	}
	return place ^ lowest
}

// treeOrder returns the places of a tree, each behind its parent.
func treeOrder(n int) []int {
	children := make([][]int, n)
	for place := 1; place < n; place++ {
		parent := treeParent(place, n)
		children[parent] = append(children[parent], place)
	}
	order := []int{0}
	for i := 0; i < len(order); i++ {
		order = append(order, children[order[i]]...)
	}
	return order
}

// pairwise is a step for each distance between ranks.
func (s *schedule) pairwise() {
	n := len(s.c.Ranks)
	sent, got := make([]Part, n), make([]Part, n)
	for k := 1; k < n; k++ {
		nextSent, nextGot := make([]Part, n), make([]Part, n)
		for r := range n {
			to := (r + k) % n
			var p Part
			if k == 1 {
				p = s.begin(r, to)
			} else {
				p = s.send(r, to, sent[r], got[r])
			}
			nextSent[r], nextGot[to] = p, p
		}
		sent, got = nextSent, nextGot
	}
}

// begin is send of a message that needs the rank's own data of this round.
func (s *schedule) begin(from, to int, waitsFor ...Part) Part {
	first := s.flows[connection{from, to, s.tree2}] == 0
	p := s.send(from, to, waitsFor...)
	switch f := &s.e.Flows[p.Flow]; {
	case s.round > 0:
		s.wait(p, s.c.computes(from), s.ready[from])
	case first:
		f.Start += s.c.computes(from)
		f.Begins = true
	}
	return p
}

// send adds a message, which waits for others to arrive, and returns what is to arrive of its flow.
func (s *schedule) send(from, to int, waitsFor ...Part) Part {
	of := connection{from, to, s.tree2}
	number, ok := s.flows[of]
	if !ok {
		number = int32(len(s.e.Flows))
		s.flows[of] = number + 1 // 0: there is none
		a, b := s.c.Ranks[from], s.c.Ranks[to]
		name := fmt.Sprintf("%s-%s-%s", s.c.Name, a, b)
		if s.tree2 {
			name += "-2"
		}
		s.e.Flows = append(s.e.Flows, Flow{
			Name: name, Group: s.c.Name, From: a, To: b,
			Priority: s.c.Priority, Start: s.c.Start, Message: s.c.messageBytes(),
		})
	} else {
		number--
	}
	f := &s.e.Flows[number]
	f.Size += f.Message
	p := Part{number, int32(f.Messages())}
	s.wait(p, 0, waitsFor)
	s.hear(to, p)
	return p
}

// wait has a message wait.
func (s *schedule) wait(p Part, delay Duration, parts []Part) {
	if len(parts) > 0 {
		s.e.within = append(s.e.within, Wait{For: parts, Delay: delay, Then: []Part{p}})
	}
}

// hear notes what a rank receives in the round: of each flow all messages so far.
func (s *schedule) hear(rank int, p Part) {
	heard := s.heard[rank]
	i := slices.IndexFunc(heard, func(h Part) bool { return h.Flow == p.Flow })
	if i >= 0 {
		heard[i] = p
		return
	}
	s.heard[rank] = append(heard, p)
}
