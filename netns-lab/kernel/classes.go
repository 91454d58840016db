// SPDX-License-Identifier: Apache-2.0

package kernel

import "github.com/pcn-linux/pcn/internal/experiment"

// Classes of the lab: DSCP's class selectors.
const (
	roceDSCP    = 26 // class 3, lossless, as RoCE is usually set up: data of priority 0
	controlDSCP = 48 // class 6, never paused: CNPs, pure ACKs
	dataClass   = roceDSCP >> 3
	ctrlClass   = controlDSCP >> 3
)

// dataDSCP returns the DSCP of a priority of data: 26, 18, 10 and 2.
func dataDSCP(priority int) int { return int(experiment.DataClass(priority))<<3 | roceDSCP&7 }
