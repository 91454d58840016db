// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net/netip"
)

// sinkPort is the port to which bursts go: discard.
const sinkPort = 9

// portRange is the range of a host's ports for one side of flows.
type portRange struct{ first, last uint16 }

// The ports of TCP flows' senders and receivers, and of bursts, which are UDP.
var (
	flowSrcPorts  = portRange{10000, 19999}
	flowDstPorts  = portRange{20000, 65535}
	burstSrcPorts = portRange{30000, 65535}
)

// addresses assigns each flow its own ports at its hosts.
type addresses struct {
	plan  *plan
	taken map[takenPorts]uint16 // how many
}

// takenPorts identifies a range of ports at a host.
type takenPorts struct {
	host int
	portRange
}

func newAddresses(p *plan) *addresses {
	return &addresses{plan: p, taken: make(map[takenPorts]uint16)}
}

// next returns a host's address with the next port of the range.
func (a *addresses) next(host int, r portRange) (netip.AddrPort, error) {
	n := &a.plan.nodes[host]
	at := takenPorts{host, r}
	if a.taken[at] > r.last-r.first {
		return netip.AddrPort{}, fmt.Errorf(
			"host %s has ports for %d flows only: spread them over more hosts", n.name, a.taken[at])
	}
	port := r.first + a.taken[at]
	a.taken[at]++
	return netip.AddrPortFrom(n.addr, port), nil
}
