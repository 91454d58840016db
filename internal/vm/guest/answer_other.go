// SPDX-License-Identifier: Apache-2.0

//go:build !arm64

package guest

// answerResource is the file of the answer's memory.
const answerResource = "resource2"
