// SPDX-License-Identifier: Apache-2.0

// Package kernel runs experiments on the kernel it is on: it wires network namespaces into a fabric, sends traffic
// through it, and collects what happened.
//
//	plan     who is there: ports, addresses, routes, queues; from the experiment alone
//	fabric   namespaces, links, qdiscs and programs, made and removed
//	traffic  flows and bursts
//	collect  events and counters, as a result.Run
//
// [Run] does one scheme of one experiment. It needs root and CONFIG_NET_SCH_BPF; package vm brings both along.
package kernel
