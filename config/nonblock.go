// SPDX-License-Identifier: Apache-2.0

//go:build !js

package config

import "syscall"

// nonBlock opens a pipe that nobody writes to at once.
const nonBlock = syscall.O_NONBLOCK
