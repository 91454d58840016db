// SPDX-License-Identifier: Apache-2.0

// Package report draws the runs of an experiment into one HTML file that needs
// nothing else: no network, no script, no font. The figures are those of the PCN
// paper (NSDI'20), Fig. 2: PAUSE rate and throughput, one scheme below the other on
// the same axes.
//
// The same runs give the same bytes: nothing of the time of the machine is in it.
package report
