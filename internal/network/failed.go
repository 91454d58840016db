// SPDX-License-Identifier: Apache-2.0

package network

import "slices"

// failureNames are the names by which a link can be failed: either end may come first, and the name
// without the suffix stands for all links between the two nodes.
func (l Link) failureNames() []string {
	back := Link{A: l.B, B: l.A, Suffix: l.Suffix}
	return []string{l.Name(), back.Name(), l.A + "-" + l.B, l.B + "-" + l.A}
}

// Without returns the network with the named links failed. A name is that of one link, such as
// L0-T3.1, or of all between two nodes, such as L0-T3. Names of no link change nothing.
func (n *Network) Without(names []string) *Network {
	out := *n
	if len(names) == 0 {
		return &out
	}
	failed := make(map[string]bool, len(names))
	for _, name := range names {
		failed[name] = true
	}
	isFailed := func(name string) bool { return failed[name] }
	out.Links = make([]Link, 0, len(n.Links))
	out.Failed = slices.Clone(n.Failed)
	for _, l := range n.Links {
		if slices.ContainsFunc(l.failureNames(), isFailed) {
			out.Failed = append(out.Failed, l)
		} else {
			out.Links = append(out.Links, l)
		}
	}
	return &out
}

// LinksNamed returns the numbers of the links that a name stands for, as in [Network.Without].
func (n *Network) LinksNamed(name string) []int {
	var numbers []int
	for i, l := range n.Links {
		if slices.Contains(l.failureNames(), name) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// UnknownLinks returns those of the names that no link has, whether it works or failed.
func (n *Network) UnknownLinks(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	known := make(map[string]bool)
	for _, l := range slices.Concat(n.Links, n.Failed) {
		for _, name := range l.failureNames() {
			known[name] = true
		}
	}
	var unknown []string
	for _, name := range names {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
