// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// graph has every kind of value that is saved, and some that are not.
type graph struct {
	number  int32
	real    float64
	is      bool
	text    string
	plain   []struct{ a, b uint16 }
	nodes   []node
	first   *node // of nodes, or elsewhere
	byName  map[string]*node
	counts  map[uint32]struct{}
	random  *rand.Rand
	fixed   *settings
	same    []node // as nodes, or nil
	call    func() int
	private private
}

type node struct {
	name string
	next *node
	data [3]uint8
	list []string
	many [][]uint64
}

type settings struct{ name string }

type private struct{ saved, lost int }

var rules = Rules{
	Fixed: []reflect.Type{reflect.TypeFor[*settings](), reflect.TypeFor[func() int]()},
	Own: map[reflect.Type]func(*Codec, any) error{
		reflect.TypeFor[private](): func(c *Codec, at any) error {
			return c.Value(&at.(*private).saved)
		},
	},
}

// built returns a graph as a program builds it before it runs.
func built() *graph {
	g := &graph{
		fixed: &settings{"as built"}, random: rand.New(rand.NewPCG(1, 2)),
		nodes: make([]node, 2, 3), call: func() int { return 7 }, private: private{1, 2},
		byName: map[string]*node{"old": {name: "old"}},
	}
	g.first, g.same = &g.nodes[0], g.nodes
	return g
}

// change makes of a graph what bytes say.
func change(g *graph, data []byte) {
	seed := make([]byte, 32)
	copy(seed, data)
	r := rand.New(rand.NewChaCha8([32]byte(seed)))
	text := func() string { return strings.Repeat(string(rune('a'+r.IntN(9))), r.IntN(4)) }
	g.number, g.real, g.is, g.text = r.Int32(), r.NormFloat64(), r.IntN(2) == 0, text()
	g.private = private{r.Int(), r.Int()}
	for range r.IntN(9) {
		g.random.Uint64()
		g.plain = append(g.plain, struct{ a, b uint16 }{uint16(r.Uint32()), 1})
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		n.name, n.data = text(), [3]uint8{byte(r.Uint32()), 1}
		for range r.IntN(3) {
			n.list = append(n.list, text())
			n.many = append(n.many, []uint64{r.Uint64()}, nil, []uint64{})
		}
		n.next = &node{name: text(), next: n.next}
		g.byName[text()] = n.next
	}
	if r.IntN(2) == 0 {
		g.nodes = append(g.nodes, node{name: text()}) // in memory that same has, but does not see
		g.same = nil
	}
	if r.IntN(2) == 0 {
		g.first = g.nodes[0].next
		g.first.next = g.first // leads to itself
		g.byName = map[string]*node{"x": g.first, "y": g.first}
	}
	if r.IntN(3) == 0 {
		g.counts = map[uint32]struct{}{r.Uint32(): {}, 5: {}}
	}
	if r.IntN(3) == 0 {
		g.plain = nil
	}
}

// agree compares what must have been loaded.
func agree(t *testing.T, got, want *graph) {
	t.Helper()
	if got.fixed.name != "as built" || got.call == nil || got.private.lost != 2 {
		t.Errorf("what stays as built is %+v", got)
	}
	if (got.same == nil) != (want.same == nil) ||
		got.same != nil && &got.same[0] != &got.nodes[0] {
		t.Error("two slices of one array are of two")
	}
	if want.first == want.byName["x"] && got.first != got.byName["x"] {
		t.Error("two pointers that were equal are not")
	}
	if got.random.Uint64() != want.random.Uint64() {
		t.Error("the random numbers are others")
	}
	a, b := *got, *want
	a.call, b.call, a.private.lost, b.private.lost = nil, nil, 0, 0
	if !reflect.DeepEqual(a, b) {
		t.Errorf("loaded %+v,\nwant %+v", a, b)
	}
}

// What is saved of a graph is there when it is loaded over another of the same build.
func FuzzSaveAndLoad(f *testing.F) {
	for i := range 64 {
		f.Add(binary.LittleEndian.AppendUint64(nil, uint64(i)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, got := built(), built()
		change(want, data)
		var out bytes.Buffer
		if err := Save(&out, &want, rules); err != nil {
			t.Fatal(err)
		}
		saved := out.Bytes()
		if err := Load(bytes.NewReader(saved), uint64(len(saved)), &got, rules); err != nil {
			t.Fatal(err)
		}
		agree(t, got, want)
		short := saved[:len(saved)-1]
		again := built()
		if Load(bytes.NewReader(short), uint64(len(short)), &again, rules) == nil {
			t.Error("a snapshot that lacks a byte was loaded")
		}
	})
}

// Bytes that are no snapshot end in an error, or in some graph: they take no more memory than they
// promise, and nothing panics.
func FuzzLoad(f *testing.F) {
	for i := range 8 {
		g := built()
		change(g, []byte{byte(i)})
		var out bytes.Buffer
		if err := Save(&out, &g, rules); err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes())
		cut := bytes.Clone(out.Bytes())
		cut[len(cut)*i/8] ^= 1 << i
		f.Add(cut)
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		g := built()
		_ = Load(bytes.NewReader(data), uint64(len(data)), &g, rules)
	})
}

// What can't be saved is refused, with the place where it is.
func TestRefuses(t *testing.T) {
	twice := make([]uint32, 4)
	for _, c := range []struct {
		root any
		want string
	}{
		{&struct{ wait chan int }{}, "wait: a snapshot can't have a chan int"},
		{&struct{ f func() }{}, "f: a snapshot can't have a func()"},
		{&struct{ p uintptr }{}, "p: a snapshot can't have a uintptr"},
		{&struct{ v any }{3}, "v: a snapshot can't have a int in a interface {}"},
		{&struct{ a, b []uint32 }{twice, twice[:2]}, "b: two []uint32 of lengths 4 and 2 share"},
		{3, "a snapshot is of what a pointer leads to, not of int"},
	} {
		err := Save(&bytes.Buffer{}, c.root, Rules{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %q", c.root, err, c.want)
		}
	}
}

// An interface that was not built with the pointer that it had is refused.
func TestOtherBuild(t *testing.T) {
	type with struct{ v any }
	var out bytes.Buffer
	if err := Save(&out, &with{&node{name: "n"}}, Rules{}); err != nil {
		t.Fatal(err)
	}
	for _, into := range []*with{{}, {&settings{}}} {
		err := Load(bytes.NewReader(out.Bytes()), uint64(out.Len()), into, Rules{})
		if err == nil || !strings.Contains(err.Error(), "holds a *snapshot.node") {
			t.Errorf("loaded into %T: %v", into.v, err)
		}
	}
}
