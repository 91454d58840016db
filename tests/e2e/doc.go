// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the pcn program from the outside, as its users run it.
package e2e
