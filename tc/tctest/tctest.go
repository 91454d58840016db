// SPDX-License-Identifier: Apache-2.0

// Package tctest loads notification points for tests, with the parameters of their schemes.
package tctest

import (
	"fmt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/tc"
)

// LoadPCN loads PCN's notification point for a lab.
func LoadPCN(tNs uint64, congestedShare float64) (*tc.NP, error) {
	return load("pcn", tc.PointOptions{}, map[string]scheme.Value{
		"T":               {Kind: scheme.KindTime, Number: float64(tNs)},
		"congested_share": {Kind: scheme.KindRatio, Number: congestedShare},
	})
}

// LoadMarked loads the notification point of DCQCN, which sends a flow at most one CNP an interval;
// with TCD it takes ECT(0) for TCD's mark.
func LoadMarked(intervalNs uint64, tcd bool) (*tc.NP, error) {
	return load("dcqcn", tc.PointOptions{TCD: tcd}, map[string]scheme.Value{
		"cnp_interval": {Kind: scheme.KindTime, Number: float64(intervalNs)},
	})
}

func load(control string, o tc.PointOptions, given map[string]scheme.Value) (*tc.NP, error) {
	s, ok := scheme.Builtin().ByControl(control)
	if !ok {
		return nil, fmt.Errorf("there is no scheme %s", control)
	}
	var n scheme.Network
	values, _ := s.Object.Resolve(scheme.Settings{Given: given}, n)
	var err error
	if o.Params, err = values.Bytes(scheme.NotificationVariable, n, o.TCD); err != nil {
		return nil, err
	}
	return tc.LoadPoint(s.Setup(values).Notification, o)
}
