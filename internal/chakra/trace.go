// SPDX-License-Identifier: Apache-2.0

// Package chakra reads execution traces of MLCommons' Chakra, a file for each rank, and makes a
// GOAL schedule of them: what a rank computes, sends, receives and does with others, and what each
// waits for.
package chakra

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Type is what a node does.
type Type int

// The types, as et_def.proto numbers them.
const (
	Invalid Type = iota
	Metadata
	Load
	Store
	Compute
	Send
	Receive
	Collective
)

// Node is an operation of a rank.
type Node struct {
	ID        uint64
	Name      string
	Type      Type
	Deps      []uint64 // IDs of nodes that must be over
	Control   []uint64 // the same, if they are there: profilers name callers that they left out
	DurationU uint64   // microseconds
	Numbers   map[string]int64
	Texts     map[string]string
}

// mostMicros keeps times in nanoseconds within an int64.
const mostMicros = math.MaxInt64 / 1_000_000

// Parse reads the trace of a rank: protobuf, or JSON with workload_graph.
func Parse(data []byte) ([]Node, error) {
	if len(data) > 0 && data[0] == '{' && json.Valid(data) {
		return parseJSON(data)
	}
	nodes, err := parseProto(data)
	if err != nil {
		return nil, err
	}
	return nodes, check(nodes)
}

// check fails if nodes are no graph.
func check(nodes []Node) error {
	ids := make(map[uint64]bool, len(nodes))
	for _, n := range nodes {
		if ids[n.ID] {
			return fmt.Errorf("node %d is given twice", n.ID)
		}
		ids[n.ID] = true
	}
	for _, n := range nodes {
		if n.Type <= Invalid || n.Type > Collective {
			return fmt.Errorf("node %d (%q) has type %d: want 1 to 7, as et_def.proto has them",
				n.ID,
				n.Name, n.Type)
		}
		if n.DurationU > mostMicros {
			return fmt.Errorf("node %d (%q) takes %d us: want less", n.ID, n.Name, n.DurationU)
		}
		for _, d := range n.Deps {
			if !ids[d] {
				return fmt.Errorf("node %d (%q) waits for node %d, which is not there", n.ID,
					n.Name, d)
			}
		}
	}
	return nil
}

// parseProto reads messages that each have their length in front: a GlobalMetadata, then Nodes.
func parseProto(data []byte) ([]Node, error) {
	var nodes []Node
	for at, first := 0, true; at < len(data); first = false {
		message, n := protowire.ConsumeBytes(data[at:])
		if n < 0 {
			return nil, fmt.Errorf("byte %d: no message with its length in front: want an "+
				"execution "+
				"trace of Chakra, such as trace.0.et", at)
		}
		if !first {
			node, err := parseNode(message)
			if err != nil {
				return nil, fmt.Errorf("node at byte %d: %w", at, err)
			}
			nodes = append(nodes, node)
		} else if err := eachField(message, func(field) error { return nil }); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
		at += n
	}
	if len(nodes) == 0 {
		return nil, errors.New("the trace has no nodes: want an execution trace of Chakra, such " +
			"as trace.0.et")
	}
	return nodes, nil
}

// field is one of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64 // of a number
	bytes  []byte // of a string or message
}

// eachField calls see with the fields of a message.
func eachField(message []byte, see func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.value = uint64(v)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(message)
		default:
			return fmt.Errorf("field %d has wire type %d, which Chakra does not use", number, kind)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := see(f); err != nil {
			return err
		}
	}
	return nil
}

func parseNode(message []byte) (Node, error) {
	n := Node{Numbers: map[string]int64{}, Texts: map[string]string{}}
	err := eachField(message, func(f field) error {
		switch f.number {
		case 1:
			n.ID = f.value
		case 2:
			n.Name = string(f.bytes)
		case 3:
			n.Type = Type(min(f.value, 1<<20))
		case 4:
			return addDeps(&n.Control, f)
		case 5:
			return addDeps(&n.Deps, f)
		case 7:
			n.DurationU = f.value
		case 10:
			return n.addAttribute(f.bytes)
		}
		return nil
	})
	return n, err
}

// addDeps adds IDs, which come one by one or packed.
func addDeps(deps *[]uint64, f field) error {
	if f.kind == protowire.VarintType {
		*deps = append(*deps, f.value)
		return nil
	}
	for rest := f.bytes; len(rest) > 0; {
		id, size := protowire.ConsumeVarint(rest)
		if size < 0 {
			return protowire.ParseError(size)
		}
		*deps, rest = append(*deps, id), rest[size:]
	}
	return nil
}

// addAttribute adds a value with a name; lists and floating-point numbers are of no use here.
func (n *Node) addAttribute(message []byte) error {
	name := ""
	var value field
	err := eachField(message, func(f field) error {
		switch {
		case f.number == 1:
			name = string(f.bytes)
		case f.number > 2:
			value = f
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch value.number {
	case 7, 9, 11, 13, 27: // int32, int64, uint32, uint64, bool
		n.Numbers[name] = int64(value.value)
	case 15, 17: // sint32, sint64
		n.Numbers[name] = protowire.DecodeZigZag(value.value)
	case 19, 21, 25: // fixed32, fixed64, sfixed64
		n.Numbers[name] = int64(value.value)
	case 23: // sfixed32
		n.Numbers[name] = int64(int32(value.value))
	case 29:
		n.Texts[name] = string(value.bytes)
	}
	return nil
}

// jsonNode is a node as Chakra's feeder reads it from JSON.
type jsonNode struct {
	ID       uint64   `json:"Id"`
	Name     string   `json:"Name"`
	Type     Type     `json:"NodeType"`
	Runtime  uint64   `json:"runtime"`
	DataDeps []uint64 `json:"data_deps"`
	CtrlDeps []uint64 `json:"ctrl_deps"`
	CPU      bool     `json:"is_cpu_op"`
	CommType *int64   `json:"comm_type"`
	CommSize *int64   `json:"comm_size"`
	CommSrc  *int64   `json:"comm_src"`
	CommDst  *int64   `json:"comm_dst"`
	CommTag  *int64   `json:"comm_tag"`
	Group    *string  `json:"pg_name"`
}

func parseJSON(data []byte) ([]Node, error) {
	var file struct {
		Graph []jsonNode `json:"workload_graph"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("read workload_graph: %w", err)
	}
	if len(file.Graph) == 0 {
		return nil, errors.New("the file has no workload_graph, or no node in it")
	}
	var nodes []Node
	for _, j := range file.Graph {
		n := Node{ID: j.ID, Name: j.Name, Type: j.Type, DurationU: j.Runtime,
			Deps: j.DataDeps, Control: j.CtrlDeps, Numbers: map[string]int64{},
			Texts: map[string]string{}}
		if j.CPU {
			n.Numbers["is_cpu_op"] = 1
		}
		for name, value := range map[string]*int64{"comm_type": j.CommType, "comm_size": j.CommSize,
			"comm_src": j.CommSrc, "comm_dst": j.CommDst, "comm_tag": j.CommTag} {
			if value != nil {
				n.Numbers[name] = *value
			}
		}
		if j.Group != nil {
			n.Texts["pg_name"] = *j.Group
		}
		nodes = append(nodes, n)
	}
	return nodes, check(nodes)
}
