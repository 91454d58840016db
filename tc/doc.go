// SPDX-License-Identifier: Apache-2.0

// Package tc attaches PCN's tc programs, through tcx:
//
//   - [Fabric], a switch: ingress of each of its ports;
//   - [Arrive], a lab host's first ingress program: applies marks, counts flows, absorbs bursts;
//   - [NP], PCN's notification point at receivers: ingress, and an egress program that makes CNPs;
//   - [RP], PCN's reaction point at senders: ingress;
//   - [FirstRTT], LDCP's first round trip, and [WRED], a switch played at a host's device: egress;
//   - [HostNP] and [HostRP], the same for real hosts: IPv6, VLANs, UDP, signed CNPs;
//   - [Stamp], a host's last egress program: classes as DSCP.
//
// Stamp, FirstRTT, WRED, PlainSYN, HostNP and HostRP know IPv6 and VLAN tags too. The others are
// for the lab: they handle plain IPv4 only, and ignore other packets.
//
// An attachment lives as long as the value that made it, or until its device goes.
package tc
