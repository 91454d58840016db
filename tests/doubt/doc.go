// SPDX-License-Identifier: Apache-2.0

// Package doubt tests that a sender on a host which cannot go by its control ends in the window of
// a plain TCP, is as good as CUBIC then, and that it shows. Its bed is a sender, a router and a
// receiver in network namespaces of their own, with a real bottleneck at the router.
package doubt
