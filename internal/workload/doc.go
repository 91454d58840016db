// SPDX-License-Identifier: Apache-2.0

// Package workload generates traffic: flows arrive at random, with sizes from a published
// distribution, from one sender or from several at once (incast).
//
//	cdf    distributions of flow sizes, and the ones that come with pcn
//	spec   what to generate, and the generator
//	trace  files of flows
//
// The same spec always gives the same flows.
package workload
