// SPDX-License-Identifier: Apache-2.0

package chakra

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/pcn-linux/pcn/internal/goal"
)

// The kinds of collectives, as et_def.proto numbers them.
const (
	allReduce     = 0
	reduce        = 1
	allGather     = 2
	gather        = 3
	scatter       = 4
	broadcast     = 5
	allToAll      = 6
	reduceScatter = 7
	reduceBlock   = 8
	barrier       = 9
)

// Options are what traces do not say.
type Options struct {
	Groups map[string][]int // ranks of process groups, by name; a node without one is of all ranks
}

// mostOps bounds the operations of a schedule: collectives are many more than nodes.
const mostOps = 10_000_000

// collectiveTag is the tag of the first collective: those of sends are below.
const collectiveTag = 1 << 32

// Schedule makes a schedule of the traces of all ranks. Collectives are what ASTRA-sim's ring does:
// in all-reduce and reduce-scatter, comm_size is of all data, and each step sends its part; in
// all-gather it is what each rank gives. All-to-all sends all parts at once; a broadcast is a chain
// from the first rank.
func Schedule(ranks [][]Node, o Options) (*goal.Schedule, error) {
	b := &builder{ranks: ranks, options: o, count: make([]map[string]int, len(ranks)),
		seen: map[string]map[int]first{}}
	b.out.Ranks = make([][]goal.Op, len(ranks))
	for r, nodes := range ranks {
		b.count[r] = map[string]int{}
		if err := b.rank(r, nodes); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return &b.out, b.complete()
}

type builder struct {
	ranks   [][]Node
	options Options
	out     goal.Schedule
	ops     int
	count   []map[string]int         // collectives of a rank in a group
	seen    map[string]map[int]first // the n-th collective of a group, of all its ranks
}

// first is a collective as the first rank has it.
type first struct {
	rank, tag  int
	kind, size int64
	ranks      int // that have it
}

func (b *builder) add(r int, op goal.Op) (int, error) {
	if b.ops++; b.ops > mostOps {
		return 0, fmt.Errorf("more than %d sends, receives and computations in all: split the "+
			"trace",
			mostOps)
	}
	b.out.Ranks[r] = append(b.out.Ranks[r], op)
	return len(b.out.Ranks[r]) - 1, nil
}

func (b *builder) rank(r int, nodes []Node) error {
	begins := make(map[uint64]int, len(nodes)) // op that begins a node
	ends := make(map[uint64]int, len(nodes))
	for _, n := range nodes {
		// a node begins with an operation of no time, which waits for all that it needs
		begin, err := b.add(r, goal.Op{Kind: goal.Calc})
		if err != nil {
			return err
		}
		begins[n.ID] = begin
		last, err := b.node(r, n, begin)
		if err != nil {
			return fmt.Errorf("node %d (%q): %w", n.ID, n.Name, err)
		}
		end := last[0]
		if len(last) > 1 {
			if end, err = b.add(r, goal.Op{Kind: goal.Calc, After: last}); err != nil {
				return err
			}
		}
		ends[n.ID] = end
	}
	for _, n := range nodes {
		op := &b.out.Ranks[r][begins[n.ID]]
		for _, d := range n.Deps {
			op.After = append(op.After, ends[d])
		}
		for _, d := range n.Control {
			if end, ok := ends[d]; ok {
				op.After = append(op.After, end)
			}
		}
	}
	return nil
}

// node adds the operations of a node behind one, and returns those with which it is over.
func (b *builder) node(r int, n Node, begin int) (last []int, err error) {
	// A communication of the CPU is the call, and another node is what the GPU sends.
	if n.Numbers["is_cpu_op"] != 0 {
		n.Type = Compute
	}
	switch n.Type {
	case Compute, Load, Store, Metadata:
		if n.Type == Compute && n.DurationU == 0 && n.Numbers["num_ops"] > 0 {
			return nil, fmt.Errorf("it has %d operations and no duration, and how long they take "+
				"is a matter of a processor's model: write duration_micros", n.Numbers["num_ops"])
		}
		b.out.Ranks[r][begin].Ns = int64(n.DurationU) * 1000
		return []int{begin}, nil
	case Send, Receive:
		return b.point(r, n, begin)
	}
	return b.collective(r, n, begin)
}

// size returns a node's comm_size.
func size(n Node) (uint64, error) {
	s, ok := n.Numbers["comm_size"]
	if !ok {
		return 0, errors.New("it has no comm_size, so how much it sends is not known")
	}
	if s < 0 || s > 1<<50 {
		return 0, fmt.Errorf("comm_size is %d: want bytes", s)
	}
	return uint64(s), nil
}

func (b *builder) point(r int, n Node, begin int) ([]int, error) {
	bytes, err := size(n)
	if err != nil {
		return nil, err
	}
	op := goal.Op{Kind: goal.Send, Bytes: bytes, After: []int{begin}}
	other := "comm_dst"
	if n.Type == Receive {
		op.Kind, other = goal.Recv, "comm_src"
	}
	peer, ok := n.Numbers[other]
	if !ok || peer < 0 || peer >= int64(len(b.ranks)) || int(peer) == r {
		return nil, fmt.Errorf("%s is %d: want another rank, below %d", other, peer, len(b.ranks))
	}
	tag := n.Numbers["comm_tag"]
	if tag < 0 || tag >= collectiveTag {
		return nil, fmt.Errorf("comm_tag is %d: want a number below 2^32", tag)
	}
	op.Peer, op.Tag = int(peer), uint64(tag)
	i, err := b.add(r, op)
	return []int{i}, err
}

// group returns the ranks of a node's process group.
func (b *builder) group(n Node) (name string, ranks []int, err error) {
	for _, key := range []string{"pg_name", "comm_group"} {
		name = cmp.Or(name, n.Texts[key])
		if id, ok := n.Numbers[key]; ok && name == "" {
			name = fmt.Sprint(id)
		}
	}
	if name == "" || len(b.options.Groups) == 0 {
		for r := range b.ranks {
			ranks = append(ranks, r)
		}
		return name, ranks, nil
	}
	ranks, ok := b.options.Groups[name]
	if !ok {
		return name, nil, fmt.Errorf("no process group %q in the file of groups", name)
	}
	seen := map[int]bool{}
	for _, r := range ranks {
		if r < 0 || r >= len(b.ranks) || seen[r] {
			return name, nil, fmt.Errorf("process group %q has rank %d twice, or not below %d",
				name,
				r, len(b.ranks))
		}
		seen[r] = true
	}
	return name, ranks, nil
}

func (b *builder) collective(r int, n Node, begin int) ([]int, error) {
	name, ranks, err := b.group(n)
	if err != nil {
		return nil, err
	}
	me := slices.Index(ranks, r)
	if me < 0 {
		return nil, fmt.Errorf("process group %q has no rank %d", name, r)
	}
	kind := n.Numbers["comm_type"]
	var bytes uint64
	if kind != barrier {
		if bytes, err = size(n); err != nil {
			return nil, err
		}
	}
	tag, err := b.meet(name, r, kind, int64(bytes))
	if err != nil || len(ranks) == 1 {
		return []int{begin}, err
	}
	return b.expand(member{b, r, me, ranks, tag, begin}, kind, bytes)
}

// meet finds the n-th collective of a group, which must be the same for all its ranks, and returns
// its tag.
func (b *builder) meet(name string, r int, kind, bytes int64) (uint64, error) {
	number := b.count[r][name]
	b.count[r][name]++
	all := b.seen[name]
	if all == nil {
		all = map[int]first{}
		b.seen[name] = all
	}
	f, ok := all[number]
	if !ok {
		tag := 0
		for _, g := range b.seen {
			tag += len(g)
		}
		f = first{rank: r, tag: tag, kind: kind, size: bytes}
	}
	if f.kind != kind || f.size != bytes {
		return 0, fmt.Errorf("collective %d of process group %q is of type %d with %d bytes, and "+
			"of type %d with %d bytes at rank %d", number, name, kind, bytes, f.kind, f.size,
			f.rank)
	}
	f.ranks++
	all[number] = f
	return collectiveTag + uint64(f.tag), nil
}

// complete fails if a collective waits for a rank that does not take part.
func (b *builder) complete() error {
	for name, all := range b.seen {
		want := len(b.ranks)
		if group, ok := b.options.Groups[name]; ok && name != "" {
			want = len(group)
		}
		for number, f := range all {
			if f.ranks != want {
				return fmt.Errorf("collective %d of process group %q is of %d ranks, and %d have "+
					"it: want the trace of each rank, and --groups if there are several", number,
					name,
					want, f.ranks)
			}
		}
	}
	return nil
}

// member is a rank in a collective.
type member struct {
	*builder
	rank, me int
	ranks    []int
	tag      uint64
	begin    int
}

func (m member) send(to int, bytes uint64, after ...int) (int, error) {
	return m.add(m.rank, goal.Op{Kind: goal.Send, Peer: m.ranks[to], Bytes: bytes, Tag: m.tag,
		After: after})
}

func (m member) receive(from int, bytes uint64) (int, error) {
	return m.add(m.rank, goal.Op{Kind: goal.Recv, Peer: m.ranks[from], Bytes: bytes, Tag: m.tag,
		After: []int{m.begin}})
}

func (b *builder) expand(m member, kind int64, bytes uint64) ([]int, error) {
	n := len(m.ranks)
	part := max(bytes/uint64(n), 1)
	switch kind {
	case allReduce:
		return m.ring(2*(n-1), part)
	case reduceScatter, reduceBlock:
		return m.ring(n-1, part)
	case allGather:
		return m.ring(n-1, max(bytes, 1))
	case barrier:
		return m.ring(2*(n-1), 1)
	case allToAll:
		return m.all(part)
	case broadcast:
		return m.chain(max(bytes, 1))
	}
	name := map[int64]string{reduce: "reduce", gather: "gather", scatter: "scatter"}[kind]
	return nil, fmt.Errorf("collective of type %d (%s) is not read: want all-reduce, all-gather, "+
		"reduce-scatter, all-to-all, broadcast or barrier", kind, name)
}

// ring sends a part to the next rank in each step, as soon as that of the step before has come.
func (m member) ring(steps int, part uint64) ([]int, error) {
	n := len(m.ranks)
	last, sent := m.begin, 0
	for range steps {
		var err error
		if sent, err = m.send((m.me+1)%n, part, last); err != nil {
			return nil, err
		}
		if last, err = m.receive((m.me+n-1)%n, part); err != nil {
			return nil, err
		}
	}
	return []int{last, sent}, nil
}

// all sends a part to each other rank at once.
func (m member) all(part uint64) (last []int, err error) {
	n := len(m.ranks)
	for i := 1; i < n; i++ {
		sent, err := m.send((m.me+i)%n, part, m.begin)
		if err != nil {
			return nil, err
		}
		received, err := m.receive((m.me+n-i)%n, part)
		if err != nil {
			return nil, err
		}
		last = append(last, sent, received)
	}
	return last, nil
}

// chain has all data pass from rank to rank.
func (m member) chain(bytes uint64) ([]int, error) {
	last := m.begin
	var err error
	if m.me > 0 {
		if last, err = m.receive(m.me-1, bytes); err != nil {
			return nil, err
		}
	}
	if m.me == len(m.ranks)-1 {
		return []int{last}, nil
	}
	sent, err := m.send(m.me+1, bytes, last)
	return []int{last, sent}, err
}
