// SPDX-License-Identifier: Apache-2.0

// Package workload makes up traffic: flows whose sizes have a published distribution, that arrive at random, from one
// sender or from several at a time.
//
//	cdf    distributions of flow sizes, and those that come along
//	spec   what to make up, and the flows of it
//	trace  flows as a file
//
// The same spec gives the same flows. Whatever the flows come from, they are a list of [Flow].
package workload
