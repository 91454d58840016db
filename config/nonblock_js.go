// SPDX-License-Identifier: Apache-2.0

package config

// nonBlock: browsers have no pipes.
const nonBlock = 0
