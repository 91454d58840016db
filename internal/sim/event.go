// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/bits"
	"slices"
)

// kind says what happens.
type kind uint8

// The kinds of events. Of several at the same ns those come first that are first here: what
// arrives at a ns is there when a port decides at it.
const (
	evRate    kind = iota // a port's rate changes: arg is the index of the change
	evArrive              // the first packet on a port's wire arrives at the other end
	evLink                // a PAUSE, a RESUME or credits take effect: arg is a link event
	evWake                // a sender may hand over a packet: arg is the flow
	evStart               // a flow starts
	evRelease             // flows have waited long enough for others: arg is the wait
	evTimeout             // a retransmission timer
	evAck                 // a delayed ACK is due
	evWindow              // a window of a notification point ends
	evRepeat              // a switch repeats a PAUSE that it needs still: arg is a link event
	evDecide              // a port whose link is free chooses a packet
	evBin                 // a bin of the series ends
	evWatch               // look for deadlocks
	evPoll                // PFC's watchdog of a switch looks at its queues: arg is the node
	evEnd                 // the measured time ends
)

// event is a value in the queue: its time, its order among others at the same ns, and what it is
// about.
type event struct {
	at    int64
	order uint64 // kind, how long before it was pushed (the longer, the less), world.turns
	arg   uint32
}

// An order has kindBits for the kind, and ageBits for the age in ns, which is 0.27 s at most.
const turnBits, ageBits, kindBits = 32, 28, 4

const _ = uint(1<<kindBits - 1 - evEnd) // does not compile if there are more kinds

// newEvent returns an event that is pushed at a time.
func newEvent(pushed, at int64, k kind, turn, arg uint32) event {
	const oldest = 1<<ageBits - 1
	age := oldest - uint64(min(at-pushed, oldest))
	return event{at, uint64(k)<<(turnBits+ageBits) | age<<turnBits | uint64(turn), arg}
}

func (e *event) kind() kind { return kind(e.order >> (turnBits + ageBits)) }

// before is the order of events: of several at the same ns that of their kinds; of several of a
// kind those come first that were pushed first, as timers of Linux do. Of arrivals that were pushed
// at the same ns that comes first whose port was first at the node before, as it would be if timers
// of equal ports had been pushed one after the other ever since. What is left goes by the numbers
// of ports, flows or nodes. So the order depends on nothing but what happens, and for a node on
// what happens there: parts of a run have it without asking each other. Events that are equal are
// the same.
func (e *event) before(other *event) bool {
	if e.at != other.at {
		return e.at < other.at
	}
	return e.order < other.order || e.order == other.order && e.arg < other.arg
}

// eventQueue has the events to come, and hands them out in their order. It is a calendar: events of
// the near future are in buckets of equal width, those of the far future in a heap. All events of a
// bucket are sorted when its turn comes. What is pushed into it then is in another heap, unless it
// comes last.
type eventQueue struct {
	shift    uint                 // a bucket is 2^shift ns wide
	time     int64                // of the event that happens
	now      int64                // number of the running bucket
	running  []event              // its events in their order, of which done are over
	done     int                  // index into running
	soon     eventHeap            // more events of the running bucket
	spare    []event              // as large as running was, for sorting
	buckets  [buckets]int32       // by number, modulo buckets: its last chunk; 0: it is empty
	occupied [buckets / 64]uint64 // bit for each bucket that has events
	chunks   []chunk              // the first is none
	free     int32                // the first chunk that no bucket has; 0: there is none
	near     int                  // events in buckets
	far      eventHeap
}

// buckets is how many buckets are ahead.
const buckets = 4096

// chunk is some events of a bucket. Chunks that were in use last are used next, so that the events
// of a small network stay in the nearest cache: few of the buckets have any.
type chunk struct {
	events [chunkEvents]event
	next   int32 // the next of the bucket, or of those that are free; the first behind the last
	count  int32
}

// chunkEvents makes a chunk two lines of the cache.
const chunkEvents = 5

// begin has the clock begin at start. Most events should be less than horizon ahead when they are
// pushed.
func (q *eventQueue) begin(start, horizon int64) {
	q.time = start
	q.shift = uint(bits.Len64(uint64(horizon / buckets)))
	q.now = start >> q.shift
	q.chunks = make([]chunk, 1)
}

// file puts an event into the bucket of a slot.
func (q *eventQueue) file(slot int64, e event) {
	last := q.buckets[slot]
	if last == 0 || q.chunks[last].count == chunkEvents {
		last = q.extend(slot, last)
	}
	c := &q.chunks[last]
	c.events[c.count] = e
	c.count++
}

// extend adds an empty chunk to the bucket of a slot, behind its last, and returns it.
func (q *eventQueue) extend(slot int64, last int32) int32 {
	i := q.free
	if i == 0 {
		i = int32(len(q.chunks))
		q.chunks = append(q.chunks, chunk{})
	} else {
		q.free = q.chunks[i].next
	}
	c := &q.chunks[i]
	c.count, c.next = 0, i
	if last == 0 {
		q.occupied[slot>>6] |= 1 << (slot & 63)
	} else {
		c.next, q.chunks[last].next = q.chunks[last].next, i
	}
	q.buckets[slot] = i
	return i
}

// take empties the bucket of a slot, and adds its events to others in the order of their pushes.
func (q *eventQueue) take(slot int64, to []event) []event {
	last := q.buckets[slot]
	if last == 0 {
		return to
	}
	for i := q.chunks[last].next; ; i = q.chunks[i].next {
		c := &q.chunks[i]
		if c.count == 1 { // as in most small networks
			to = append(to, c.events[0])
		} else {
			to = append(to, c.events[:c.count]...)
		}
		if i == last {
			break
		}
	}
	q.free, q.chunks[last].next = q.chunks[last].next, q.free
	q.buckets[slot] = 0
	q.occupied[slot>>6] &^= 1 << (slot & 63)
	return to
}

func (q *eventQueue) push(at int64, k kind, arg uint32) { q.add(newEvent(q.time, at, k, 0, arg)) }

// add puts an event into the queue.
func (q *eventQueue) add(e event) {
	number := e.at >> q.shift
	switch ahead := number - q.now; {
	case ahead <= 0:
		q.pushSoon(e)
	case ahead < buckets:
		q.file(number&(buckets-1), e)
		q.near++
	default:
		q.far.push(e)
	}
}

// pushSoon puts an event into the running bucket.
func (q *eventQueue) pushSoon(e event) {
	if n := len(q.running); n == q.done || q.running[n-1].before(&e) {
		q.running = append(q.running, e)
		return
	}
	q.soon.push(e)
}

// head returns the first event of the running bucket, which must have one.
func (q *eventQueue) head() *event {
	if q.isSoon() {
		return &q.soon.events[0]
	}
	return &q.running[q.done]
}

// isSoon reports whether the first event of the running bucket was pushed into it while it ran.
func (q *eventQueue) isSoon() bool {
	soon := q.soon.events
	return len(soon) > 0 && (q.done == len(q.running) || soon[0].before(&q.running[q.done]))
}

// alone reports whether no other event happens at a time, that of the event that happens now.
func (q *eventQueue) alone(now int64) bool { return q.empty() || q.head().at > now }

// empty reports whether no event of the running bucket is left.
func (q *eventQueue) empty() bool { return q.done == len(q.running) && len(q.soon.events) == 0 }

// pop removes the first event; false if there is none.
func (q *eventQueue) pop() (e event, ok bool) {
	for q.empty() {
		if !q.turn() {
			return event{}, false
		}
	}
	if q.isSoon() {
		e = q.soon.pop()
	} else {
		e = q.running[q.done]
		q.done++
	}
	q.time = e.at
	return e, true
}

// first returns when the first event happens; math.MaxInt64 if there is none.
func (q *eventQueue) first() int64 {
	if !q.empty() {
		return q.head().at
	}
	at := int64(math.MaxInt64)
	if q.near > 0 {
		last := q.buckets[q.nextNear()&(buckets-1)]
		for i := q.chunks[last].next; ; i = q.chunks[i].next {
			c := &q.chunks[i]
			for k := range c.events[:c.count] {
				at = min(at, c.events[k].at)
			}
			if i == last {
				break
			}
		}
	}
	if len(q.far.events) > 0 {
		at = min(at, q.far.events[0].at)
	}
	return at
}

// nextBucket returns the number of the next bucket that has events; math.MaxInt64 if there is none.
func (q *eventQueue) nextBucket() int64 {
	number := int64(math.MaxInt64)
	if q.near > 0 {
		number = q.nextNear()
	}
	if len(q.far.events) > 0 {
		number = min(number, q.far.events[0].at>>q.shift)
	}
	return number
}

// ready reports whether the first event happens before end.
func (q *eventQueue) ready(end int64) bool {
	for q.empty() {
		if q.nextBucket() > (end-1)>>q.shift || !q.turn() {
			return false
		}
	}
	return q.head().at < end
}

// turn runs the next bucket that has events. Returns false if there is none.
func (q *eventQueue) turn() bool {
	number := q.nextBucket()
	if number == math.MaxInt64 {
		return false
	}
	q.running = q.take(number&(buckets-1), q.running[:0])
	q.near -= len(q.running)
	q.now, q.done = number, 0
	for len(q.far.events) > 0 && q.far.events[0].at>>q.shift == number {
		q.running = append(q.running, q.far.pop())
	}
	if len(q.running) > 1 {
		q.sort()
	}
	return true
}

// nextNear returns the number of the next bucket that has events. There must be one.
func (q *eventQueue) nextNear() int64 {
	first := (q.now + 1) & (buckets - 1)
	word := first >> 6
	if left := q.occupied[word] >> (first & 63); left != 0 {
		return q.now + 1 + int64(bits.TrailingZeros64(left))
	}
	for skipped := 64 - first&63; ; skipped += 64 {
		word = (word + 1) & (buckets/64 - 1)
		if left := q.occupied[word]; left != 0 {
			return q.now + 1 + skipped + int64(bits.TrailingZeros64(left))
		}
	}
}

// few is how many events are sorted one by one.
const few = 32

// sort sorts the running bucket.
func (q *eventQueue) sort() {
	if len(q.running) > few && q.shift <= mostShift {
		q.sortByKind()
		return
	}
	sortEvents(q.running)
}

// sortEvents sorts events that are few or nearly in order one by one, and others in another way.
func sortEvents(events []event) {
	moves, most := 0, few/2*len(events) // few events never need more moves
	for i := 1; i < len(events); i++ {
		e := events[i]
		k := i
		for ; k > 0 && e.before(&events[k-1]); k-- {
			events[k] = events[k-1]
		}
		events[k] = e
		if moves += i - k; moves > most {
			sortMany(events)
			return
		}
	}
}

func sortMany(events []event) {
	slices.SortFunc(events, func(a, b event) int {
		if a.before(&b) {
			return -1
		}
		return 1 // of events that are equal it does not matter
	})
}

// mostShift is that of the widest bucket that sortByKind sorts.
const mostShift = 3

// sortByKind sorts the running bucket by ns and kind first. Those of a kind are in the order of
// their pushes then, which is nearly theirs.
func (q *eventQueue) sortByKind() {
	var all [1 << (mostShift + kindBits)]int32 // where the next event of a ns and kind goes
	places := all[:1<<(q.shift+kindBits)]
	mask := int64(1)<<q.shift - 1
	for i := range q.running {
		e := &q.running[i]
		places[(e.at&mask)<<kindBits|int64(e.kind())]++
	}
	sum := int32(0)
	for i, n := range places {
		places[i] = sum
		sum += n
	}
	q.spare = slices.Grow(q.spare[:0], len(q.running))[:len(q.running)]
	for i := range q.running {
		e := &q.running[i]
		to := &places[(e.at&mask)<<kindBits|int64(e.kind())]
		q.spare[*to] = *e
		*to++
	}
	q.running, q.spare = q.spare, q.running
	begin := int32(0)
	for _, end := range places {
		sortEvents(q.running[begin:end])
		begin = end
	}
}

// eventHeap is a heap whose nodes have four children.
type eventHeap struct {
	events []event
}

func (h *eventHeap) push(e event) {
	i := len(h.events)
	h.events = append(h.events, e)
	events := h.events
	for i > 0 {
		parent := (i - 1) >> 2
		if !e.before(&events[parent]) {
			break
		}
		events[i] = events[parent]
		i = parent
	}
	events[i] = e
}

// pop removes the first event. The heap must not be empty.
func (h *eventHeap) pop() event {
	first := h.events[0]
	n := len(h.events) - 1
	last := h.events[n]
	h.events = h.events[:n]
	if n == 0 {
		return first
	}
	events := h.events
	i := 0
	for {
		child := i<<2 + 1
		if child >= n {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if events[c].before(&events[least]) {
				least = c
			}
		}
		if !events[least].before(&last) {
			break
		}
		events[i] = events[least]
		i = least
	}
	events[i] = last
	return first
}
