// SPDX-License-Identifier: Apache-2.0

// Package packaging tests the Debian package: what is in it, what lintian says of it, and its life
// on a machine, from installation to purge.
package packaging
