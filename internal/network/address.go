// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"net/netip"
)

// firstHostAddr is the address of host 0, 10.0.0.1. The addresses of the other hosts follow it.
const firstHostAddr = 10<<24 + 1

// IPv6Addr returns the IPv6 address of what has an IPv4 address: fd00::10.0.0.1 for 10.0.0.1. It is
// unique-local (RFC 4193), and no other network here has one to be told from.
func IPv6Addr(a netip.Addr) netip.Addr {
	b, v4 := [16]byte{0: 0xfd}, a.As4()
	copy(b[12:], v4[:])
	return netip.AddrFrom16(b)
}

// HostAddr returns the IPv4 address of a host, by its number in [Network.Hosts].
func HostAddr(host int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], firstHostAddr+uint32(host))
	return netip.AddrFrom4(b)
}
