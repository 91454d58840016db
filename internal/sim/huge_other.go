// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sim

// preferHuge does nothing here.
func preferHuge[T any]([]T) {}
