// SPDX-License-Identifier: Apache-2.0

// Package kernel runs experiments on the kernel it is on: it wires network namespaces into a
// fabric, sends traffic through it, and collects what happened.
//
// [Run] does one scheme of one experiment, in phases:
//
//	build    plan.go, classes.go, ports.go: what follows from the experiment alone
//	         fabric.go: namespaces, links, hosts, programs; registry.go and machine.go undo it all
//	prepare  traffic.go: connect.go and pacing.go for TCP flows, bursts.go for UDP
//	run      run.go: senders.go sends; events.go, sender_log.go and deadlock.go watch
//	settle   settle.go: until no packet is under way
//	read     collector.go: counters.go, drops.go, series.go, rows.go, states.go, truth.go,
//	         and verdict.go, which judges whether the run is valid
//
// It needs root and CONFIG_NET_SCH_BPF; package vm brings both along.
package kernel
