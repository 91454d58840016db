// SPDX-License-Identifier: Apache-2.0

package goal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
)

const small = `num_ranks 3 // three
/* the first
   sends */
rank 0 {
a: calc 100 cpu 1
b: send 1000b to 1 tag 7 nic 0
b requires a
c: calc 50ns
c irequires b
d: send 8 to 2
d requires c
}
rank 2 { x: recv 8b from 0  y: recv 9b from 1 tag 3 }
rank 1 {
l2 requires l1
l1: recv 1000b from 0 tag 7 cpu 0
l2: send 9b to 2 tag 3
}
`

func TestParse(t *testing.T) {
	s, err := Parse(small)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(Is(small)))
	qt.Check(t, qt.IsFalse(Is("start_ns,src,dst,size_bytes,priority\n")))
	qt.Check(t, qt.DeepEquals(s.Ranks[0], []Op{
		{Kind: Calc, Ns: 100, Line: 5},
		{Kind: Send, Bytes: 1000, Peer: 1, Tag: 7, Line: 6, After: []int{0}},
		{Kind: Calc, Ns: 50, Line: 8, Beside: []int{1}},
		{Kind: Send, Bytes: 8, Peer: 2, Line: 10, After: []int{2}},
	}))
	messages, err := s.Messages()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(messages, []Message{
		{From: 0, To: 1, Bytes: 1000, Line: 6, NotBeforeNs: 100},
		{From: 0, To: 2, Bytes: 8, Line: 10, NotBeforeNs: 150},
		{From: 1, To: 2, Bytes: 9, Line: 17, Waits: []Wait{{For: []int{0}}}},
	}))
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"num_ranks 3", "num_ranks 0", `1: num_ranks 0: want 1 to 65536`},
		{"num_ranks 3", "num_ranks many", `1: num_ranks "many": want a number`},
		{"rank 2 {", "rank 3 {", `13: rank 3: want each of 0 to 2 once`},
		{"rank 2 {", "rank 0 {", `13: rank 0: want each of 0 to 2 once`},
		{"rank 2 {", "rank 2", `13: found "x": want "{"`},
		{"to 1 tag", "at 1 tag", `6: found "at": want "to"`},
		{"to 1 tag", "to 3 tag", `6: rank 3: want 0 to 2`},
		{"from 1 tag 3", "from -1 tag 3", `13: rank -1, which is any: want one, .*`},
		{"1000b to", "1000kb to", `6: size "1000kb": want a number`},
		{"calc 100", "wait 100", `5: found "wait": want send, recv, calc, a label, or "}"`},
		{"b requires a", "b requires z", `7: the rank has no label z`},
		{"b requires a", "z requires a", `7: the rank has no label z`},
		{"c: calc", "b: calc", `8: label b: the rank has two of it`},
		{"b requires a", "b requires a a requires b", `5: operations wait for each other, .*`},
		{"x: recv 8b from 0", "", `10: rank 0 sends to rank 2, which has no recv for it`},
		{"recv 8b from 0", "recv 8b from 0 recv 1b from 0",
			`13: rank 2 receives from rank 0 with tag 0 more often than that sends to it`},
		{"tag 3\n}\n", "tag 3\n", `17: the rank does not end: want "}"`},
	} {
		text := strings.Replace(small, c.old, c.new, 1)
		qt.Assert(t, qt.Not(qt.Equals(text, small)), qt.Commentf("%s", c.old))
		s, err := Parse(text)
		if err == nil {
			_, err = s.Messages()
		}
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.new))
	}
}

// executed runs a schedule operation by operation, and returns when each message leaves. latency
// has how long each is under way.
func executed(s *Schedule, messages []Message, latency []int64) []int64 {
	type key struct{ rank, op int }
	type channel struct {
		from, to int
		tag      uint64
	}
	sent, sends := map[channel][]key{}, map[key]int{}
	for r, ops := range s.Ranks {
		for i, op := range ops {
			if op.Kind == Send {
				sends[key{r, i}] = len(sends)
				c := channel{r, op.Peer, op.Tag}
				sent[c] = append(sent[c], key{r, i})
			}
		}
	}
	takes := map[key]key{}
	for r, ops := range s.Ranks {
		for i, op := range ops {
			if c := (channel{op.Peer, r, op.Tag}); op.Kind == Recv {
				takes[key{r, i}], sent[c] = sent[c][0], sent[c][1:]
			}
		}
	}
	begun := map[key]int64{}
	var begin, end func(k key) int64
	begin = func(k key) int64 {
		if at, ok := begun[k]; ok {
			return at
		}
		var at int64
		for _, i := range s.Ranks[k.rank][k.op].After {
			at = max(at, end(key{k.rank, i}))
		}
		for _, i := range s.Ranks[k.rank][k.op].Beside {
			at = max(at, begin(key{k.rank, i}))
		}
		begun[k] = at
		return at
	}
	end = func(k key) int64 {
		op := &s.Ranks[k.rank][k.op]
		switch op.Kind {
		case Calc:
			return begin(k) + op.Ns
		case Send:
			return begin(k) + latency[sends[k]]
		}
		return max(begin(k), end(takes[k]))
	}
	leaves := make([]int64, len(messages))
	for k, i := range sends {
		leaves[i] = begin(k)
	}
	return leaves
}

// left is when messages leave by what they wait for.
func left(messages []Message, latency []int64) []int64 {
	at, known := make([]int64, len(messages)), make([]bool, len(messages))
	var leave func(i int) int64
	leave = func(i int) int64 {
		if known[i] {
			return at[i]
		}
		at[i] = messages[i].NotBeforeNs
		for _, w := range messages[i].Waits {
			for _, on := range w.For {
				at[i] = max(at[i], leave(on)+latency[on]+w.DelayNs)
			}
		}
		known[i] = true
		return at[i]
	}
	for i := range messages {
		leave(i)
	}
	return at
}

// randomSchedule has ranks that compute, send and receive in an order without deadlock.
func randomSchedule(r *rand.Rand, ranks, length int) string {
	text := make([][]string, ranks)
	for i := range length {
		a, b := r.IntN(ranks), r.IntN(ranks)
		add := func(rank int, op string) {
			n := len(text[rank])
			lines := fmt.Sprintf("l%d: %s\n", i, op)
			for range min(n, r.IntN(4)) {
				on := strings.SplitN(text[rank][r.IntN(n)], ":", 2)[0]
				lines += fmt.Sprintf("l%d %srequires %s\n", i, [...]string{"", "i"}[r.IntN(2)], on)
			}
			text[rank] = append(text[rank], lines)
		}
		if a == b {
			add(a, fmt.Sprintf("calc %d", r.IntN(1000)))
			continue
		}
		tag := r.IntN(2)
		add(a, fmt.Sprintf("send %db to %d tag %d", 1+r.IntN(9), b, tag))
		add(b, fmt.Sprintf("recv 1b from %d tag %d", a, tag))
	}
	all := fmt.Sprintf("num_ranks %d\n", ranks)
	for rank := range text {
		all += fmt.Sprintf("rank %d {\n%s}\n", rank, strings.Join(text[rank], ""))
	}
	return all
}

// Whatever messages take, they leave when an execution of the schedule sends them.
func TestMessagesAreTheSchedule(t *testing.T) {
	waits := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		s, err := Parse(randomSchedule(r, 2+r.IntN(6), 60))
		qt.Assert(t, qt.IsNil(err))
		messages, err := s.Messages()
		qt.Assert(t, qt.IsNil(err))
		for range 5 {
			latency := make([]int64, len(messages))
			for i := range latency {
				latency[i] = r.Int64N(5000)
			}
			qt.Assert(t, qt.DeepEquals(left(messages, latency), executed(s, messages, latency)),
				qt.Commentf("seed %d", seed))
		}
		for _, m := range messages {
			waits += len(m.Waits)
		}
	}
	qt.Check(t, qt.IsTrue(waits > 1000))
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Add("num_ranks 1 rank 0 { /* ")
	f.Add("num_ranks 2 rank 0 { l1: send 1b to 1 l1 requires l1 }")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err == nil {
			_, err = s.Messages()
		}
		var mistake *config.Error
		if err != nil && (!errors.As(err, &mistake) || mistake.Line < 1 ||
			mistake.Line > 1+strings.Count(text, "\n")) {
			t.Fatalf("%v of %q", err, text)
		}
	})
}
