// SPDX-License-Identifier: Apache-2.0

package chakra

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/pcn-linux/pcn/internal/goal"
)

// message puts the length of a message in front of it.
func message(fields ...[]byte) []byte {
	return protowire.AppendBytes(nil, bytes.Join(fields, nil))
}

func number(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

func text(n protowire.Number, s string) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), []byte(s))
}

func attribute(name string, kind protowire.Number, v uint64) []byte {
	return text(10, string(append(text(1, name), number(kind, v)...)))
}

var metadata = message(text(1, "0.0.4"))

// The first bytes of a trace are as et_def.proto has them, by hand.
func TestParseByHand(t *testing.T) {
	data, err := hex.DecodeString("0704" + "0a02" + "6162" + "0000")
	qt.Assert(t, qt.IsNil(err))
	_, err = Parse(data)
	qt.Check(t, qt.ErrorMatches(err, "metadata: .*"))

	// length 7, version "0.0.4"; length 31: name "ab", type 7, attribute comm_size (int64) 1 MiB
	data, err = hex.DecodeString("07" + "0a05302e302e34" + "1a" + "08ac02" + "12026162" + "1807" +
		"520f0a09" + hex.EncodeToString([]byte("comm_size")) + "48808040")
	qt.Assert(t, qt.IsNil(err))
	nodes, err := Parse(data)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(nodes, []Node{{ID: 300, Name: "ab", Type: Collective,
		Numbers: map[string]int64{"comm_size": 1 << 20}, Texts: map[string]string{}}}))
}

func TestParse(t *testing.T) {
	packed := protowire.AppendVarint(protowire.AppendVarint(nil, 1), 2)
	data := bytes.Join([][]byte{metadata,
		message(number(1, 1), number(3, 4), number(7, 5)),
		message(number(1, 2), number(3, 5), attribute("comm_dst", 7, 1),
			attribute("comm_size", 15, protowire.EncodeZigZag(77)), number(4, 9), number(5, 1)),
		message(number(1, 3), number(3, 6), text(5, string(packed)),
			text(10, string(append(text(1, "pg_name"), text(29, "0")...)))),
	}, nil)
	nodes, err := Parse(data)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(nodes, []Node{
		{ID: 1, Type: Compute, DurationU: 5, Numbers: map[string]int64{},
			Texts: map[string]string{}},
		{ID: 2, Type: Send, Deps: []uint64{1}, Control: []uint64{9}, Texts: map[string]string{},
			Numbers: map[string]int64{"comm_dst": 1, "comm_size": 77}},
		{ID: 3, Type: Receive, Deps: []uint64{1, 2}, Numbers: map[string]int64{},
			Texts: map[string]string{"pg_name": "0"}},
	}))
	nodes, err = Parse([]byte(`{"workload_graph": [
		{"Id": 4, "Name": "a", "NodeType": 4, "runtime": 9},
		{"Id": 5, "NodeType": 7, "data_deps": [4], "comm_type": 0, "comm_size": 10,
			"pg_name": "1"}]}`))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(nodes[0].DurationU, 9))
	qt.Check(t, qt.DeepEquals(nodes[1].Deps, []uint64{4}))
	qt.Check(t, qt.Equals(nodes[1].Texts["pg_name"], "1"))
}

func TestNoTrace(t *testing.T) {
	node := func(fields ...[]byte) string { return string(metadata) + string(message(fields...)) }
	for _, tc := range []struct{ data, want string }{
		{"", "the trace has no nodes.*"},
		{"{}", "the file has no workload_graph.*"},
		{string(metadata), "the trace has no nodes.*"},
		{"\x7fELF", "byte 0: no message.*"},
		{string(metadata) + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "byte 8: no message.*"},
		{node(number(1, 1)), `node 1 \(""\) has type 0: want 1 to 7.*`},
		{node(number(3, 1<<63)), `.*has type .*`},
		{node(number(3, 4), number(5, 8)), `.*waits for node 8, which is not there`},
		{node(number(3, 4), number(7, 1<<62)), `.*takes 4611686018427387904 us: want less`},
		{node(number(3, 4)) + string(message(number(3, 4))), "node 0 is given twice"},
		{node(number(3, 4), []byte{0x0b}), ".*wire type 3, which Chakra does not use"},
	} {
		_, err := Parse([]byte(tc.data))
		qt.Check(t, qt.ErrorMatches(err, tc.want), qt.Commentf("%q", tc.data))
	}
}

func collective(id uint64, kind, size int64, deps ...uint64) Node {
	return Node{ID: id, Type: Collective, Deps: deps,
		Numbers: map[string]int64{"comm_type": kind, "comm_size": size}}
}

// finish is the time at which all of a schedule has arrived in a network where a message of b bytes
// takes alpha + b ns, and does not wait for others: that of the longest chain.
func finish(t *testing.T, s *goal.Schedule, alpha int64) int64 {
	t.Helper()
	messages, err := s.Messages()
	qt.Assert(t, qt.IsNil(err))
	arrives := make([]int64, len(messages))
	last := int64(0)
	for range messages { // as often as the longest chain may need
		for i, m := range messages {
			at := m.NotBeforeNs
			for _, w := range m.Waits {
				for _, on := range w.For {
					at = max(at, arrives[on]+w.DelayNs)
				}
			}
			arrives[i] = at + alpha + int64(m.Bytes)
			last = max(last, arrives[i])
		}
	}
	return last
}

// Collectives take the time of alpha and beta that textbooks give (Thakur and others, 2005): the
// ring's steps, each with its part.
func TestCollectivesTakeTheirTime(t *testing.T) {
	const alpha = 500
	for _, n := range []int{2, 3, 4, 8, 16} {
		size := int64(n) * 1000
		for _, tc := range []struct {
			name string
			kind int64
			want int64
		}{
			{"all-reduce", allReduce, int64(2*(n-1)) * (alpha + 1000)},
			{"reduce-scatter", reduceScatter, int64(n-1) * (alpha + 1000)},
			{"all-gather", allGather, int64(n-1) * (alpha + size)},
			{"all-to-all", allToAll, alpha + 1000},
			{"broadcast", broadcast, int64(n-1) * (alpha + size)},
		} {
			var ranks [][]Node
			for range n {
				ranks = append(ranks, []Node{
					{ID: 1, Type: Compute, DurationU: 3}, collective(2, tc.kind, size, 1),
					{ID: 3, Type: Compute, DurationU: 2, Deps: []uint64{2}},
					collective(4, tc.kind, size, 3),
				})
			}
			s, err := Schedule(ranks, Options{})
			qt.Assert(t, qt.IsNil(err))
			want := 3000 + 2*tc.want + 2000
			if tc.kind == broadcast { // the first rank goes on when it has sent
				want = finish(t, s, alpha)
				qt.Check(t, qt.IsTrue(want >= 3000+tc.want+2000))
			}
			qt.Check(t, qt.Equals(finish(t, s, alpha), want), qt.Commentf("%s, %d ranks", tc.name,
				n))

			var text bytes.Buffer // a schedule is the same when it is read again
			qt.Assert(t, qt.IsNil(s.Write(&text)))
			again, err := goal.Parse(text.String())
			qt.Assert(t, qt.IsNil(err))
			a, err := s.Messages()
			qt.Assert(t, qt.IsNil(err))
			b, err := again.Messages()
			qt.Assert(t, qt.IsNil(err))
			for i := range b {
				b[i].Line = 0
			}
			qt.Check(t, qt.DeepEquals(a, b))
		}
	}
}

func TestGroupsAndPoints(t *testing.T) {
	inGroup := func(name string) Node {
		n := collective(1, allReduce, 2000)
		n.Texts = map[string]string{"pg_name": name}
		return n
	}
	point := func(kind Type, other string, rank int64) Node {
		return Node{ID: 2, Type: kind, Deps: []uint64{1},
			Numbers: map[string]int64{other: rank, "comm_size": 700}}
	}
	ranks := [][]Node{{inGroup("a"), point(Send, "comm_dst", 2)}, {inGroup("a")},
		{inGroup("b"), point(Receive, "comm_src", 0)}, {inGroup("b")}}
	groups := map[string][]int{"a": {0, 1}, "b": {3, 2}}
	s, err := Schedule(ranks, Options{Groups: groups})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(finish(t, s, 100), 2*(100+1000)+100+700))

	for _, tc := range []struct {
		ranks [][]Node
		want  string
	}{
		{ranks[:2], ".*of 2 ranks.*|.*comm_dst is 2.*"},
		{[][]Node{{inGroup("c")}}, ".*no process group \"c\".*"},
		{[][]Node{{inGroup("b")}, {inGroup("a")}, {inGroup("b")}, {inGroup("b")}},
			".*process group \"b\" has no rank 0"},
	} {
		_, err := Schedule(tc.ranks, Options{Groups: groups})
		qt.Check(t, qt.ErrorMatches(err, tc.want))
	}
}

func TestWhatIsNotRead(t *testing.T) {
	two := func(a, b Node) [][]Node { return [][]Node{{a}, {b}} }
	for _, tc := range []struct {
		ranks [][]Node
		want  string
	}{
		{two(collective(1, reduce, 8), collective(1, reduce, 8)), ".*type 1 \\(reduce\\) is not " +
			"read.*"},
		{two(collective(1, allReduce, 8), collective(1, allReduce, 16)),
			"rank 1: .*with 16 bytes, and of type 0 with 8 bytes at rank 0"},
		{two(collective(1, allReduce, 8), Node{ID: 1, Type: Compute}), ".*is of 2 ranks, and 1 " +
			"have it.*"},
		{two(collective(1, allReduce, -1), Node{}), ".*comm_size is -1: want bytes"},
		{[][]Node{{{ID: 1, Type: Compute, Numbers: map[string]int64{"num_ops": 5}}}},
			".*it has 5 operations and no duration.*"},
		{two(Node{ID: 1, Type: Send, Numbers: map[string]int64{"comm_size": 1}}, Node{}),
			".*comm_dst is 0: want another rank.*"},
	} {
		_, err := Schedule(tc.ranks, Options{})
		qt.Check(t, qt.ErrorMatches(err, tc.want))
	}
}

// Whatever a file has, it is refused or gives a schedule, of bounded size.
func FuzzParse(f *testing.F) {
	f.Add(bytes.Join([][]byte{metadata, message(number(1, 1), number(3, 7),
		attribute("comm_size", 9, 100))}, nil))
	f.Add([]byte(`{"workload_graph": [{"Id": 5, "NodeType": 7, "comm_size": 10}]}`))
	f.Add([]byte(strings.Repeat("\x00", 30)))
	f.Fuzz(func(t *testing.T, data []byte) {
		nodes, err := Parse(data)
		if err != nil {
			return
		}
		s, err := Schedule([][]Node{nodes, nodes}, Options{})
		if err != nil {
			return
		}
		var text bytes.Buffer
		qt.Assert(t, qt.IsNil(s.Write(&text)))
		if _, err := goal.Parse(text.String()); err != nil {
			t.Errorf("%v", fmt.Errorf("read what was written: %w", err))
		}
	})
}
