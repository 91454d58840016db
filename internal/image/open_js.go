// SPDX-License-Identifier: Apache-2.0

package image

import "errors"

// Open fails: a browser has no images, and the simulator needs none of what unpacks them.
func Open(string, string) (*Image, error) { return nil, errors.New("a browser has no images") }
