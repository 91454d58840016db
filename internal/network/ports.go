// SPDX-License-Identifier: Apache-2.0

package network

import "strings"

// PortName returns the name of the egress port of node towards peer, such as S0->S1,
// or S0->S1.0 with the suffix of the link if there are several.
func PortName(node, peer string) string {
	return node + "->" + peer
}

// SplitPort returns the node and the peer of a port name such as S0->S1 or S0->S1.0.
func SplitPort(name string) (node, peer string, ok bool) {
	node, peer, ok = strings.Cut(name, "->")
	peer, _, _ = strings.Cut(peer, ".")
	return node, peer, ok
}
