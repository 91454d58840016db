// SPDX-License-Identifier: Apache-2.0

// Package npecn is the port qdisc: it makes a network device the port of an emulated lossless switch or host,
// with rate, delay, 8 classes in strict priority, PFC and NP-ECN.
//
// [Load] registers the qdisc "npecn" with the kernel (6.16+, CONFIG_NET_SCH_BPF) for a fixed set of ports. A
// port's id is its device's netdev group; [Qdisc.Attach] makes it the root qdisc. The C is in bpf/npecn.bpf.c.
package npecn
