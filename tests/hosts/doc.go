// SPDX-License-Identifier: Apache-2.0

// Package hosts tests congestion controls as real hosts run them: with the offloads of their
// devices, over a Linux router whose queue marks.
//
// A [Bed] is some senders, a router and a receiver, in network namespaces of their own. Measure
// one by one command, as root:
//
//	go test ./tests/hosts -count 1 -v -run TestMeasure \
//		-bed 'offloads=segments control=pcn flows=2 rate=200Mbps T=1ms for=10s runs=10'
package hosts
