// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package launch

// nativeChecks says that nothing runs natively here.
func nativeChecks() []Check {
	return []Check{{"Linux", ForNative, errNativeNeedsLinux, "run without --native"}}
}
