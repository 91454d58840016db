// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"

	"github.com/pcn-linux/pcn/config/scheme"
)

// controlCode returns the wasm module of a scheme's control.
func controlCode(s scheme.Scheme) ([]byte, error) {
	if s.Own != nil {
		return ownCode(s, s.Own.Simulated.Control)
	}
	return object(s.Section + ".wasm")
}

// notificationCode returns the wasm module of a notification point.
func notificationCode(s scheme.Scheme, name string) ([]byte, error) {
	switch name {
	case scheme.OwnPart:
		return ownCode(s, s.Own.Simulated.Notification)
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
	if rule != scheme.OwnPart {
		return nil, nil
	}
	return ownCode(s, s.Own.Simulated.Port)
}

// ownCode returns a module of a scheme of the user's own, or says why there is none.
func ownCode(s scheme.Scheme, code []byte) ([]byte, error) {
	if code != nil {
		return code, nil
	}
	why := cmp.Or(s.Own.Simulated.Missing, "it was compiled by a pcn that could not")
	return nil, fmt.Errorf("scheme %s was not compiled for the simulator: %s; "+
		"or run it with `--engine kernel`", s.Name, why)
}
