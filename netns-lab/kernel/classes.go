// SPDX-License-Identifier: Apache-2.0

package kernel

import "github.com/pcn-linux/pcn/netns-lab/experiment"

// Classes of the lab: DSCP's class selectors.
const (
	roceDSCP    = 26 // class 3, lossless, as RoCE is usually set up: data of priority 0
	controlDSCP = 48 // class 6, never paused: CNPs, pure ACKs
	dataClass   = roceDSCP >> 3
	ctrlClass   = controlDSCP >> 3
)

// dataDSCP returns the DSCP of a priority of data: 26, 18, 10 and 2.
func dataDSCP(priority int) int { return int(experiment.DataClass(priority))<<3 | roceDSCP&7 }

// dataClasses returns the classes of the experiment's data. Class 3 is always among them.
func dataClasses(e *experiment.Experiment) []uint8 {
	used := [experiment.Priorities]bool{0: true}
	for _, f := range e.Flows {
		used[f.Priority] = true
	}
	for _, b := range e.Bursts {
		used[b.Priority] = true
	}
	var classes []uint8
	for priority, is := range used {
		if is {
			classes = append(classes, experiment.DataClass(priority))
		}
	}
	return classes
}
