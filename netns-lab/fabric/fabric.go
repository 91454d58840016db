// SPDX-License-Identifier: Apache-2.0

// Package fabric checks the network of an experiment before anything runs: for deadlocks that its
// routes allow, buffers without room for what arrives after a PAUSE, thresholds in the wrong order,
// and links that carry less than what leads to them.
package fabric

import (
	"fmt"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/network"
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
	Key      string   `json:"key"`  // of the experiment's file
	Line     int      `json:"line"` // of the key, or of what it would be in
	Message  string   `json:"message"`
	Hint     string   `json:"hint"` // what would be right
	Show     string   `json:"show"` // what to change and to run; FILE is the experiment
}

// Result is what a check found.
type Result struct {
	Findings []Finding `json:"findings"`
	// Checked and Pairs are of failures of two links: how many were checked, and how many there
	// are.
	Checked int `json:"checked_pairs"`
	Pairs   int `json:"pairs"`
}

// checker collects findings.
type checker struct {
	e       *experiment.Experiment
	network *network.Network
	routes  *network.Routes
	numbers map[string]int // of nodes
	used    map[int]bool   // ports that the file's traffic may take
	Result
}

// Check looks for mistakes and risks. It fails if the network is none.
func Check(e *experiment.Experiment) (*Result, error) {
	n := e.Topology.Network()
	routes, err := n.Routes()
	if err != nil {
		return nil, fmt.Errorf("find the paths of experiment %s: %w", e.Name, err)
	}
	c := &checker{e: e, network: n, routes: routes, numbers: map[string]int{}}
	for i, name := range n.Nodes() {
		c.numbers[name] = i
	}
	c.Findings = []Finding{}
	c.followTraffic()
	if c.lossless() {
		c.deadlocks()
		c.buffers()
		c.thresholds()
	}
	c.marking()
	c.capacity()
	return &c.Result, nil
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

// lossless reports whether some scheme of the experiment runs without losses.
func (c *checker) lossless() bool {
	for _, s := range c.e.Schemes {
		if c.e.PFCOn(s) {
			return true
		}
	}
	return false
}

func (c *checker) find(s Severity, key, hint, show, format string, args ...any) {
	c.Findings = append(c.Findings, Finding{
		Severity: s, Key: key, Line: c.e.LineOf(key), Message: fmt.Sprintf(format, args...),
		Hint: hint, Show: show,
	})
}

// run is the command that shows a finding of the file as it is.
const run = "pcn run FILE --engine sim"
