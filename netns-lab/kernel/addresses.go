// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net/netip"
)

// sinkPort is where bursts go: discard.
const sinkPort = 9

// portRange are the ports that one side of flows takes at a host.
type portRange struct{ first, last uint16 }

// The ports of TCP flows' senders and receivers, and of bursts, which are UDP.
var (
	flowSrcPorts  = portRange{10000, 19999}
	flowDstPorts  = portRange{20000, 65535}
	burstSrcPorts = portRange{30000, 65535}
)

// addresses gives each flow ports of its own at its hosts.
type addresses struct {
	plan  *plan
	taken map[takenPorts]uint16 // how many
}

// takenPorts are those of a range at a host.
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
