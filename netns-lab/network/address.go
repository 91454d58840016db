// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"net/netip"
)

// firstHostAddr is the address of host 0, 10.0.0.1. The addresses of the other hosts follow it.
const firstHostAddr = 10<<24 + 1

// HostAddr returns the IPv4 address of a host, by its number in [Network.Hosts].
func HostAddr(host int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], firstHostAddr+uint32(host))
	return netip.AddrFrom4(b)
}
