// SPDX-License-Identifier: Apache-2.0

package goal

import (
	"cmp"
	"maps"
	"slices"
)

// Message is a send and the time at which it may leave: when all of Waits have arrived, each and
// its delay, and not before NotBeforeNs.
type Message struct {
	From, To    int // ranks
	Bytes       uint64
	Line        int
	NotBeforeNs int64
	Waits       []Wait // by delay
}

// Wait is messages, and how long after the last of them has arrived.
type Wait struct {
	For     []int // indices of messages, ascending
	DelayNs int64
}

// Messages returns the sends of all ranks, rank by rank. A send is over when its data has arrived,
// and so is a recv when it has been posted, too. Hosts compute at once all that waits for nothing:
// CPUs take only the time of calcs, and these do not wait for each other's CPU. An error is an
// [*config.Error].
func (s *Schedule) Messages() ([]Message, error) {
	b := &builder{s: s, message: make([][]int, len(s.Ranks))}
	b.number()
	if err := b.match(); err != nil {
		return nil, err
	}
	for r := range s.Ranks {
		if err := b.rank(r); err != nil {
			return nil, err
		}
	}
	return b.out, nil
}

// maxTerms is how many messages all messages of a schedule may wait for.
const maxTerms = 20_000_000

type builder struct {
	s       *Schedule
	message [][]int // by rank and operation: the message of a send, or that a recv takes
	out     []Message
	terms   []moment // by message: what its beginning needs
	total   int
}

// moment is the time when all messages have arrived, each with the delay behind it, but not before
// a time.
type moment struct {
	since   map[int]int64
	startNs int64
}

func (m *moment) add(other moment, delayNs int64) {
	m.startNs = max(m.startNs, other.startNs+delayNs)
	for message, ns := range other.since {
		m.need(message, ns+delayNs)
	}
}

func (m *moment) need(message int, delayNs int64) {
	if m.since == nil {
		m.since = map[int]int64{}
	}
	m.since[message] = max(m.since[message], delayNs)
}

// number gives all sends their messages.
func (b *builder) number() {
	for r, ops := range b.s.Ranks {
		b.message[r] = make([]int, len(ops))
		for i, op := range ops {
			if op.Kind == Send {
				b.message[r][i] = len(b.out)
				b.out = append(b.out, Message{From: r, To: op.Peer, Bytes: op.Bytes, Line: op.Line})
			}
		}
	}
	b.terms = make([]moment, len(b.out))
}

// match gives each recv the message of its send: the n-th from a rank with a tag is the n-th.
func (b *builder) match() error {
	type channel struct {
		from, to int
		tag      uint64
	}
	sent := map[channel][]int{}
	for r, ops := range b.s.Ranks {
		for i, op := range ops {
			if op.Kind == Send {
				c := channel{r, op.Peer, op.Tag}
				sent[c] = append(sent[c], b.message[r][i])
			}
		}
	}
	for r, ops := range b.s.Ranks {
		for i, op := range ops {
			if op.Kind != Recv {
				continue
			}
			c := channel{op.Peer, r, op.Tag}
			if len(sent[c]) == 0 {
				return failAt(op.Line, "rank %d receives from rank %d with tag %d "+
					"more often than that sends to it", r, op.Peer, op.Tag)
			}
			b.message[r][i], sent[c] = sent[c][0], sent[c][1:]
		}
	}
	least := -1 // the first send that nobody takes
	for _, left := range sent {
		if len(left) > 0 && (least < 0 || left[0] < least) {
			least = left[0]
		}
	}
	if least >= 0 {
		m := b.out[least]
		return failAt(m.Line, "rank %d sends to rank %d, which has no recv for it",
			m.From, m.To)
	}
	return nil
}

// rank finds out when each send of a rank may leave.
func (b *builder) rank(r int) error {
	ops := b.s.Ranks[r]
	order, err := inOrder(ops)
	if err != nil {
		return err
	}
	begins, ends := make([]moment, len(ops)), make([]moment, len(ops))
	for _, i := range order {
		op := &ops[i]
		for _, k := range op.After {
			begins[i].add(ends[k], 0)
		}
		for _, k := range op.Beside {
			begins[i].add(begins[k], 0)
		}
		b.prune(&begins[i])
		switch op.Kind {
		case Calc:
			ends[i].add(begins[i], op.Ns)
		case Send:
			b.begin(b.message[r][i], begins[i])
			ends[i].need(b.message[r][i], 0) // and so all that its beginning needs
		case Recv:
			ends[i].add(begins[i], 0)
			ends[i].need(b.message[r][i], 0)
		}
		if b.total += len(ends[i].since); b.total > maxTerms {
			return failAt(op.Line, "operations wait for more than %d messages in all: "+
				"split the schedule", maxTerms)
		}
	}
	return nil
}

// prune removes messages without which others that the moment needs do not begin in time.
func (b *builder) prune(m *moment) {
	for _, by := range slices.Sorted(maps.Keys(m.since)) {
		delay, needed := m.since[by]
		if !needed {
			continue
		}
		for earlier, ns := range b.terms[by].since {
			if d, ok := m.since[earlier]; ok && ns+delay >= d {
				delete(m.since, earlier)
			}
		}
	}
}

// begin notes when a message may leave.
func (b *builder) begin(message int, m moment) {
	b.terms[message] = m
	out := &b.out[message]
	out.NotBeforeNs = m.startNs
	byDelay := map[int64][]int{}
	for on, ns := range m.since {
		byDelay[ns] = append(byDelay[ns], on)
	}
	for ns, on := range byDelay {
		slices.Sort(on)
		out.Waits = append(out.Waits, Wait{on, ns})
	}
	slices.SortFunc(out.Waits, func(x, y Wait) int { return cmp.Compare(x.DelayNs, y.DelayNs) })
}

// inOrder returns the operations such that each is behind those it waits for.
func inOrder(ops []Op) ([]int, error) {
	waiting := make([]int, len(ops))
	next := make([][]int, len(ops))
	for i, op := range ops {
		for _, k := range slices.Concat(op.After, op.Beside) {
			waiting[i]++
			next[k] = append(next[k], i)
		}
	}
	var order []int
	for i := range ops {
		if waiting[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, i := range next[order[at]] {
			if waiting[i]--; waiting[i] == 0 {
				order = append(order, i)
			}
		}
	}
	for i := range ops {
		if waiting[i] > 0 {
			return nil, failAt(ops[i].Line, "operations wait for each other, this among them")
		}
	}
	return order, nil
}
