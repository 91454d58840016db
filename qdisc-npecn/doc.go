// SPDX-License-Identifier: Apache-2.0

// Package npecn makes a network device the port of an emulated lossless switch or host, by a qdisc:
// with rate, delay, 8 classes in strict priority, PFC or CBFC, and a marker such as NP-ECN.
//
// [Load] registers the qdisc "npecn" with the kernel (6.16+, CONFIG_NET_SCH_BPF) for a fixed set of
// ports. A port's id is its device's netdev group; [Attach] makes it the root qdisc. The C begins
// in bpf/npecn.bpf.c. A marking rule of one's own is compiled into it (bpf/include/marker.h) and
// given as [Options.Object].
package npecn
