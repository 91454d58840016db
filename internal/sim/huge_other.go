// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sim

// makeHuge is make here.
func makeHuge[T any](n, capacity int) []T { return make([]T, n, capacity) }
