// SPDX-License-Identifier: Apache-2.0

// Package cnp holds the wire formats of congestion management on lossless
// Ethernet, for people to decode and for tests to compare: the congestion
// notification packet (CNP) that PCN sends, the congestion notification message
// (CNM) that QCN sends and the priority flow control (PFC) frame, a pcapng writer
// that puts them into Wireshark on a run's own clock, and a Wireshark dissector
// for the CNM and for what PCN adds to a CNP.
//
// # CNP
//
// A CNP answers a data packet of the TCP flow A:sport -> B:dport. It is a
// RoCEv2 CNP (InfiniBand Architecture Specification, volume 1, annex A17) that
// carries PCN's verdict (NSDI'20, figure 9) in 74 bytes of Ethernet, FCS
// excluded. All numbers but the ICRC are big endian:
//
//	offset  bytes  field
//	     0     14  Ethernet: A's MAC, B's MAC, EtherType 0x0800
//	    14      2  IPv4 0x45; TOS = DSCP 48, ECN 0b11 (CE) decrease, 0b00 (not-ECT) else
//	    16      8  total length 60; identification 0; don't fragment; TTL 64; protocol 17
//	    24     10  header checksum; source B; destination A
//	    34      8  UDP: 0xC000 | ((sport ^ dport) & 0x3FFF); port 4791; length 40; checksum 0
//	    42     12  BTH: opcode 0x81; 0; P_Key 0xFFFF; BECN 0x40, hold 0x60; queue pair 0; PSN 0
//	    54      4  RecRate, in Mbit/s
//	    58      4  flow ports: sport, dport
//	    62      8  tag: zero, or the signature of Sign
//	    70      4  ICRC, little endian
//
// An increase is not-ECT rather than ECT, so that no switch on the way can mark
// it into a decrease. The UDP source port spreads CNPs over ECMP paths.
//
// DCQCN's notification point sends decreases with RecRate 0. With TCD it sends holds
// too: bit 0x20 beside BECN, which is reserved in RoCE and, like BECN, outside of the
// ICRC, says undetermined (UE).
//
// For a flow of UDP the PSN is 17. Over IPv6 the CNP has IPv6's header instead,
// with the same class and verdict, flow label 0 and hop limit 64, and what follows
// is 20 bytes later. docs/security.md has what a tag signs.
//
// # CNM
//
// A CNM answers a frame of S that a congestion point sampled (IEEE 802.1Qau, now
// in 802.1Q), as the manual of HPE's FlexFabric 5940 has it. All numbers are big
// endian:
//
//	offset  bytes  field
//	     0     14  Ethernet: S's MAC, the congestion point's, EtherType 0x22E7
//	    14      2  version (4 bits) 0; reserved (6) 0; QntzFb (6)
//	    16      8  CPID
//	    24      4  cnmQOffset = Q - Qeq; cnmQDelta = Q - Qold; signed, in 64 bytes
//	    28      2  encapsulated priority, in the upper 3 bits
//	    30      6  encapsulated destination MAC
//	    36      2  encapsulated MSDU length, 0 to 64
//	    38   0-64  encapsulated MSDU: what follows the sampled frame's Ethernet header
//	            n  zeros up to 60 bytes
//
// The unit of 64 bytes and the place of the priority's bits are from memory of the
// standard, not from a source. So is that the standard's MSDU starts with the
// EtherType, which here it does not: 64 bytes then hold two less of the packet.
// VLAN tag and CN-TAG, which a congestion point copies, are not supported.
package cnp
