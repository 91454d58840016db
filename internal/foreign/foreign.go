// SPDX-License-Identifier: Apache-2.0

// Package foreign reads networks that were written for containerlab and Mininet, and writes them as
// experiments. What an experiment can't say is noted with its line.
package foreign

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/internal/network"
)

// Network is what was read.
type Network struct {
	Name  string
	Nodes []*Node
	Links []Link
	Notes []Note // what can't be said, and what was done in its place

	names map[string]string // of nodes here, by those of the file and by their addresses
}

// Node is a host or a switch.
type Node struct {
	Name      string
	Line      int
	Switch    bool // it forwards; else it is a host, which has one link
	Addresses []string
	Programs  []Program
	// Startup is the file of a switch's own configuration; empty: none.
	Startup     string
	StartupLine int
	links       int
}

// Program runs on a host.
type Program struct {
	Command []string
	Env     map[string]string
	Server  bool // it does not end by itself
}

// Link is a cable between two nodes.
type Link struct {
	A, B    string
	Line    int
	RateBps float64 // 0: not said
	DelayNs float64
	Loss    float64 // share of packets
}

// Note is about a line of the file; 0: about all of it.
type Note struct {
	Line int
	Text string
}

func (n *Network) note(line int, format string, args ...any) {
	note := Note{line, fmt.Sprintf(format, args...)}
	if !slices.Contains(n.Notes, note) {
		n.Notes = append(n.Notes, note)
	}
}

func (n *Network) node(name string) *Node {
	i := slices.IndexFunc(n.Nodes, func(x *Node) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return n.Nodes[i]
}

// Defaults where a file says nothing.
const (
	defaultRateBps = 10e9
	defaultDelayNs = 10e3
	leastDelayNs   = 500
	leastRateBps   = 1e3
)

// arrange makes it a network that an experiment can have: hosts with one link each, to a switch,
// and all nodes connected. It fails if nothing is left.
func (n *Network) arrange() error {
	n.dropApart()
	for _, l := range n.Links {
		n.node(l.A).links++
		n.node(l.B).links++
	}
	for _, x := range n.Nodes {
		if !x.Switch && x.links > 1 {
			x.Switch = true
			n.note(x.Line, "%s has %d links, and hosts here have one: it is a switch, which "+
				"forwards by shortest paths", x.Name, x.links)
			if len(x.Programs) > 0 {
				n.note(x.Line, "programs of %s are left out, as it is a switch", x.Name)
				x.Programs = nil
			}
		}
	}
	var links []Link
	for _, l := range n.Links {
		if n.node(l.A).Switch || n.node(l.B).Switch {
			links = append(links, l)
			continue
		}
		between := &Node{Name: l.A + "-" + l.B, Line: l.Line, Switch: true}
		n.Nodes = append(n.Nodes, between)
		first, second := l, l
		first.B, second.A = between.Name, between.Name
		first.DelayNs, second.DelayNs, second.Loss = l.DelayNs/2, l.DelayNs/2, 0
		links = append(links, first, second)
		n.note(l.Line, "%s and %s are linked to each other: a switch is between them, and each "+
			"half has half of the delay", l.A, l.B)
	}
	n.Links = links
	hosts := 0
	for _, x := range n.Nodes {
		if !x.Switch {
			hosts++
		}
	}
	if hosts < 2 {
		return fmt.Errorf("hosts, nodes with one link: %d, and an experiment needs two", hosts)
	}
	return nil
}

// dropApart leaves out nodes that no path connects to most others.
func (n *Network) dropApart() {
	part := map[string]int{}
	var sizes []int
	for _, x := range n.Nodes {
		if _, known := part[x.Name]; known {
			continue
		}
		todo, size := []string{x.Name}, 0
		part[x.Name] = len(sizes)
		for ; len(todo) > 0; size++ {
			at := todo[0]
			todo = todo[1:]
			for _, l := range n.Links {
				for _, ends := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
					if _, known := part[ends[1]]; ends[0] == at && !known {
						part[ends[1]] = len(sizes)
						todo = append(todo, ends[1])
					}
				}
			}
		}
		sizes = append(sizes, size)
	}
	if len(sizes) < 2 {
		return
	}
	largest := slices.Index(sizes, slices.Max(sizes))
	n.Nodes = slices.DeleteFunc(n.Nodes, func(x *Node) bool {
		if part[x.Name] != largest {
			n.note(x.Line, "%s is left out: no link leads from it to most others", x.Name)
		}
		return part[x.Name] != largest
	})
	n.Links = slices.DeleteFunc(n.Links, func(l Link) bool { return part[l.A] != largest })
}

// Experiment returns the network as an experiment, after [Network.arrange].
func (n *Network) Experiment(from string) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "# from %s\n", path.Base(from))
	for i, x := range n.Nodes {
		kind := "host"
		if x.Switch {
			kind = "switch"
		}
		fmt.Fprintf(&out, "# %s is %s %s\n", nodeName(x, i), kind, x.Name)
	}
	for _, note := range n.Notes {
		if note.Line > 0 {
			fmt.Fprintf(&out, "# line %d: %s\n", note.Line, note.Text)
		} else {
			fmt.Fprintf(&out, "# %s\n", note.Text)
		}
	}
	type program struct {
		Name    string            `yaml:"name"`
		Host    string            `yaml:"host"`
		After   string            `yaml:"after,omitempty"`
		Command []string          `yaml:"command,flow"`
		Env     map[string]string `yaml:"env,omitempty"`
		Server  bool              `yaml:"server,omitempty"`
	}
	var programs []program
	for i, x := range n.Nodes {
		before := ""
		for k, p := range x.Programs {
			one := program{
				Name: fmt.Sprintf("%s-%d", nodeName(x, i), k), Host: nodeName(x, i), After: before,
				Command: n.translate(p.Command), Env: p.Env, Server: p.Server,
			}
			if programs = append(programs, one); !p.Server {
				before = one.Name
			}
		}
	}
	text := map[string]any{
		"name": name(n.Name), "topology": map[string]any{"file": "topology.txt"},
		"schemes":  []string{"cubic"},
		"switch":   map[string]any{"pfc": map[string]any{"off": true}, "port_buffer": "1MB"},
		"duration": "60s", "warmup": "0ms", "sample": "10ms", "frame": "1514B",
		"files": map[string]string{"topology.txt": n.topology()},
	}
	if len(programs) > 0 {
		text["programs"] = programs
	}
	body, err := yaml.Marshal(text)
	if err != nil {
		return "", fmt.Errorf("write the experiment: %w", err)
	}
	out.Write(body)
	return out.String(), nil
}

// nodeName is what an experiment calls node i.
func nodeName(x *Node, i int) string {
	if x.Switch {
		return fmt.Sprintf("S%d", i)
	}
	return fmt.Sprintf("H%d", i)
}

// topology returns the network in the form of HPCC's simulator.
func (n *Network) topology() string {
	number := map[string]int{}
	var switches []string
	for i, x := range n.Nodes {
		number[x.Name] = i
		if x.Switch {
			switches = append(switches, fmt.Sprint(i))
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d %d %d\n%s\n", len(n.Nodes), len(switches), len(n.Links),
		strings.Join(switches, " "))
	for _, l := range n.Links {
		a, b := number[l.A], number[l.B]
		rate, delay := cmp.Or(l.RateBps, defaultRateBps), max(l.DelayNs, leastDelayNs)
		if l.DelayNs == 0 {
			delay = defaultDelayNs
		}
		fmt.Fprintf(&out, "%d %d %.0fbps %.0fns %g\n", a, b, max(rate, leastRateBps), delay, l.Loss)
	}
	return out.String()
}

// wired returns the network by the names of the file, after [Network.arrange].
func (n *Network) wired() *network.Network {
	out := &network.Network{}
	for _, x := range n.Nodes {
		if x.Switch {
			out.Switches = append(out.Switches, x.Name)
		} else {
			out.Hosts = append(out.Hosts, x.Name)
		}
	}
	for _, l := range n.Links {
		rate, delay := cmp.Or(l.RateBps, defaultRateBps), cmp.Or(l.DelayNs, defaultDelayNs)
		a, b := min(l.A, l.B), max(l.A, l.B)
		out.Links = append(out.Links, network.Link{A: a, B: b, RateBps: uint64(rate),
			DelayNs: uint64(delay)})
	}
	out.NumberParallel()
	return out
}

// translate calls nodes in a command as the experiment does, by name and by address.
func (n *Network) translate(command []string) []string {
	if n.names == nil {
		n.names = map[string]string{}
		for i, x := range n.Nodes {
			if x.Switch {
				continue
			}
			for _, known := range append(x.Addresses, x.Name, "clab-"+n.Name+"-"+x.Name) {
				n.names[known] = nodeName(x, i)
			}
		}
	}
	var out []string
	for _, word := range command {
		out = append(out, replaceWords(word, n.names))
	}
	return out
}

// replaceWords replaces whole names and addresses in a text.
func replaceWords(text string, names map[string]string) string {
	inWord := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._-", r)
	}
	var out, word strings.Builder
	flush := func() {
		if to, ok := names[word.String()]; ok {
			out.WriteString(to)
		} else {
			out.WriteString(word.String())
		}
		word.Reset()
	}
	for _, r := range text {
		if inWord(r) {
			word.WriteRune(r)
			continue
		}
		flush()
		out.WriteRune(r)
	}
	flush()
	return out.String()
}

// name returns a name that an experiment may have.
func name(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, text)
	if clean = strings.Trim(clean, "-"); clean == "" || clean[0] >= '0' && clean[0] <= '9' {
		clean = "net-" + clean
	}
	return strings.TrimRight(clean, "-")
}
