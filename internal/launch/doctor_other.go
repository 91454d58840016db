// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package launch

import "errors"

// ErrNeedsLinux is why nothing runs natively here.
var ErrNeedsLinux = errors.New("--native needs Linux: it runs on this machine's own " +
	"kernel; leave it out, and the experiment runs on Linux in a microVM")

// nativeChecks says that nothing runs natively here.
func nativeChecks() []Check {
	return []Check{{"Linux", ForNative, ErrNeedsLinux, "run without --native"}}
}
