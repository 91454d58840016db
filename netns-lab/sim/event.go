// SPDX-License-Identifier: Apache-2.0

package sim

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
	evTimeout             // a retransmission timer
	evAck                 // a delayed ACK is due
	evRepeat              // a switch repeats a PAUSE that it needs still: arg is a link event
	evDecide              // a port whose link is free chooses a packet
	evBin                 // a bin of the series ends
	evWatch               // look for deadlocks
	evEnd                 // the measured time ends
)

// event is a value in the heap: its time, its order among others at the same ns, and what it is
// about.
type event struct {
	at    int64
	order uint64 // kind, then sequence number
	arg   uint32
}

const kindShift = 56

func (e *event) kind() kind { return kind(e.order >> kindShift) }

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

// eventHeap is a heap whose nodes have four children.
type eventHeap struct {
	events []event
	next   uint64 // sequence number
}

func (h *eventHeap) push(at int64, k kind, arg uint32) {
	h.next++
	e := event{at: at, order: uint64(k)<<kindShift | h.next, arg: arg}
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
