// SPDX-License-Identifier: Apache-2.0

// Package boot boots Debian with systemd in a container, and does there what an administrator does
// with the Debian package: install it, start the units that it ships, upgrade, stop, remove, purge.
package boot
