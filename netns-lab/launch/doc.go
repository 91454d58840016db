// SPDX-License-Identifier: Apache-2.0

// Package launch runs experiments from the outside: each scheme of each case in a microVM of its own, side by side,
// or all of them on the host's kernel; and puts result folders, captures and the report where the user asked.
package launch
