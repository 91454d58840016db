// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/mdlayher/netlink"
)

// PinsOf returns the folder of the pins of a component in the thread's network namespace.
func PinsOf(name string) (string, error) {
	here, err := currentNamespace()
	return filepath.Join(DefaultRoot, component{name: name}.folderIn(here)), err
}

// EarlierPin returns the name that version 0.1.0 gave the link of a program at an interface.
func EarlierPin(ifindex int, program string) string {
	return fmt.Sprintf("%s%d_%s", linkPrefix, ifindex, program)
}

// SettingsOf returns the settings of a control as status shows them where it runs.
func (c *Config) SettingsOf(control string) ([]Setting, error) {
	c, err := c.withPeriod(c.LineRate, c.RTT)
	if err != nil {
		return nil, err
	}
	components, err := controlComponents(c, measured{c.LineRate, c.RTT})
	if err != nil {
		return nil, err
	}
	for _, one := range components {
		if one.name == controlPrefix+control {
			return one.settings, nil
		}
	}
	return nil, fmt.Errorf("control %s is not to be registered", control)
}

// PeriodOf returns T of the notification point, also if it is auto.
func (c *Config) PeriodOf() (Period, error) {
	with, err := c.withPeriod(c.LineRate, c.RTT)
	if err != nil {
		return 0, err
	}
	return with.NP.T, nil
}

// IsOfNetnsExec reports whether ip netns exec made a mount.
var IsOfNetnsExec = isOfNetnsExec

// CheckDCB returns what the doctor says of a NIC whose driver answers by conn, and where packets
// have these DSCPs, data's first, or none.
func CheckDCB(conn *netlink.Conn, name string, dscps ...uint8) []Check {
	var found checks
	var stamped *classes
	if len(dscps) == 2 {
		stamped = &classes{dscps[0], dscps[1]}
	}
	checkDCB(&found, func() (*netlink.Conn, error) { return conn, nil }, name, stamped)
	return found.all
}

// ParseDCB returns what a driver's answer says: on which priorities PFC is on, the priorities of
// DSCPs, and who negotiates them.
func ParseDCB(answer []byte) (pfc *uint8, priorities map[uint8]uint8, dcbx uint8, err error) {
	n, err := parseDCB(answer)
	return n.pfc, n.priorities, n.dcbx, err
}

// CheckWallClock returns what the doctor says of a clock where signed CNPs have this window, or
// none.
func CheckWallClock(isSynchronised bool, mayBeOff, window time.Duration) []Check {
	var found checks
	wallClock{isSynchronised, mayBeOff}.check(&found, window)
	return found.all
}
