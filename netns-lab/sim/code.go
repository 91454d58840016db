// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/pcn-linux/pcn/config/scheme"
)

// controlCode returns the wasm module of a scheme's control.
func controlCode(s scheme.Scheme) ([]byte, error) {
	if s.Own != nil {
		return nil, ownError(s)
	}
	return object(s.Section + ".wasm")
}

// notificationCode returns the wasm module of a notification point.
func notificationCode(s scheme.Scheme, name string) ([]byte, error) {
	switch name {
	case scheme.OwnPart:
		return nil, ownError(s)
	case "pcn":
		return object("np.wasm")
	case "marked":
		return object("np_marked.wasm")
	}
	return nil, fmt.Errorf("scheme %s: the simulator has no notification point %q", s.Name, name)
}

// ownPortCode returns the module of ports with a marking rule of the user's own; nil if the rule is
// built in.
func ownPortCode(s scheme.Scheme, rule string) ([]byte, error) {
	if rule == scheme.OwnPart {
		return nil, ownError(s)
	}
	return nil, nil
}

func ownError(s scheme.Scheme) error {
	return fmt.Errorf("scheme %s was not compiled for the simulator: "+
		"run it with `--engine kernel`", s.Name)
}
