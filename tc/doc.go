// SPDX-License-Identifier: Apache-2.0

// Package tc attaches PCN's tc programs, through tcx:
//
//   - [Fabric], a switch: ingress of each of its ports;
//   - [Arrive], a lab host's first ingress program: applies marks, counts flows, absorbs bursts;
//   - [NP], a notification point at receivers: ingress, and an egress program that makes the CNPs;
//   - [RP], a reaction point at senders, which is part of the control's object: ingress;
//   - [FirstRTT], LDCP's first round trip, and [WRED], a switch played at a host's device: egress;
//   - [Stamp], a host's last egress program: classes as DSCP.
//
// Stamp, FirstRTT, WRED, PlainSYN, and NP and RP of real hosts know IPv6 and VLAN tags too. The
// others are for the lab: they handle plain IPv4 only, and ignore other packets.
//
// An attachment lives as long as the value that made it, or until its device goes.
package tc
