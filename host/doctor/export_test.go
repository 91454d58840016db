// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	"github.com/mdlayher/netlink"
)

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

// JudgeShares returns what the self-test says of two flows' rates, in bit/s.
func JudgeShares(isBusy bool, rates ...float64) []Check {
	var s selfTest
	s.judgeShares(rates, isBusy)
	return s.found.all
}
