// SPDX-License-Identifier: Apache-2.0

// Package fabric checks the network of an experiment before anything runs: for deadlocks that its
// routes allow, buffers without room for what arrives after a PAUSE, thresholds in the wrong order,
// and links that carry less than what leads to them.
package fabric

import (
	"fmt"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	// Mistake loses packets, stops the network for good, or makes a setting useless.
	Mistake Severity = "mistake"
	// Risk is right as long as nothing fails, or as traffic is as expected.
	Risk Severity = "risk"
)

// Finding is something that is wrong, or may be.
type Finding struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file,omitempty"` // of a switch; empty: the experiment
	Key      string   `json:"key"`            // of the file, TABLE|KEY|FIELD in that of a switch
	Line     int      `json:"line"`           // of the key, or of what it would be in
	Message  string   `json:"message"`
	Hint     string   `json:"hint"` // what would be right
	Show     string   `json:"show"` // what to change and to run; FILE is the experiment
	// Experiment is a file that shows what is wrong with a switch, and Name is what to call it.
	// Both are empty if Show needs none.
	Experiment string `json:"experiment,omitempty"`
	Name       string `json:"name,omitempty"`
}

// Result is what a check found.
type Result struct {
	Findings []Finding `json:"findings"`
	// Checked and Pairs are of failures of two links: how many were checked, and how many there
	// are.
	Checked int `json:"checked_pairs"`
	Pairs   int `json:"pairs"`
	// Lossless is whether a class has PFC at some switch of a real network.
	Lossless bool `json:"-"`
}

// checker collects findings.
type checker struct {
	e       *experiment.Experiment
	lineOf  func(key string) int
	network *network.Network
	routes  *network.Routes
	numbers map[string]int // of nodes
	used    map[int]bool   // ports that the file's traffic may take
	Result
}

// Check looks for mistakes and risks. It fails if the network is none.
func Check(e *experiment.Experiment) (*Result, error) {
	c, err := newChecker(e.Topology.Network())
	if err != nil {
		return nil, fmt.Errorf("find the paths of experiment %s: %w", e.Name, err)
	}
	c.e, c.lineOf = e, e.LineOf
	c.followTraffic()
	if slices.ContainsFunc(e.Schemes, e.PFCOn) {
		c.deadlocks()
		c.buffers()
		c.thresholds()
	}
	c.marking()
	c.capacity()
	return &c.Result, nil
}

// CheckNetwork looks for circles of buffers, if switches pause each other, and for links that carry
// less than what leads to them, in a network that is of no experiment: findings have no line.
func CheckNetwork(n *network.Network, lossless bool) (*Result, error) {
	c, err := newChecker(n)
	if err != nil {
		return nil, fmt.Errorf("find the paths: %w", err)
	}
	if lossless {
		c.deadlocks()
	}
	c.capacity()
	return &c.Result, nil
}

func newChecker(n *network.Network) (*checker, error) {
	routes, err := n.Routes()
	if err != nil {
		return nil, err
	}
	return &checker{network: n, routes: routes, numbers: n.Numbers(),
		lineOf: func(string) int { return 0 }, Result: Result{Findings: []Finding{}}}, nil
}

// followTraffic finds the ports that the traffic may take.
func (c *checker) followTraffic() {
	c.used = map[int]bool{}
	type pair struct{ from, to int }
	seen := map[pair]bool{}
	c.e.EachPath(func(from, to string) {
		p := pair{c.numbers[from], c.numbers[to]}
		if seen[p] {
			return
		}
		seen[p] = true
		visited := map[int]bool{}
		next := c.routes.HostPorts(p.from, p.to)
		for ; len(next) > 0; next = next[1:] {
			c.used[next[0]] = true
			if node := c.peer(next[0]); node >= len(c.network.Hosts) && !visited[node] {
				visited[node] = true
				next = append(next[:1:1], append(c.routes.Ports(node, p.to), next[1:]...)...)
			}
		}
	})
}

func (c *checker) find(s Severity, key, hint, show, format string, args ...any) {
	c.Findings = append(c.Findings, Finding{
		Severity: s, Key: key, Line: c.lineOf(key), Message: fmt.Sprintf(format, args...),
		Hint: hint, Show: show,
	})
}

// run is the command that shows a finding of the file as it is.
const run = "pcn run FILE --engine sim"

// uncontrolled shows drops for want of room: nothing but PAUSE keeps queues short, however well the
// file's own scheme does.
const uncontrolled = run + " --algo pfc; see the metric buffer_drops"
