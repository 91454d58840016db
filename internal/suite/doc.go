// SPDX-License-Identifier: Apache-2.0

// Package suite runs a suite of experiments on a kernel, and says whether TCP does there what it
// does on a reference kernel: the same bytes, or metrics within what seeds come to.
package suite
