// SPDX-License-Identifier: Apache-2.0

// Package uml builds User Mode Linux (UML) from Debian's source of Linux: the kernel as a program,
// with the compiler for BPF of x86, and a clock that stands still while its CPU works.
package uml

import (
	"path/filepath"
	"runtime"
)

// Runs reports whether UML runs on this machine's operating system and processor.
func Runs() bool { return runtime.GOOS == "linux" && runtime.GOARCH == "amd64" }

// Image returns the path of the program in a cache.
func Image(cache string) string { return filepath.Join(cache, "um", Release(), "linux") }

// Release is the kernel's release, as uname -r prints it.
func Release() string { return "7.3.4-pcn" }
