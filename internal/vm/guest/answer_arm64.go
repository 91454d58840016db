// SPDX-License-Identifier: Apache-2.0

package guest

// answerResource is the file of the answer's memory. Mapped as write-combining it is normal memory:
// arm64 refuses unaligned access to a device's.
const answerResource = "resource2_wc"
