// SPDX-License-Identifier: Apache-2.0

// Package report draws the runs of experiments into one HTML file that needs
// nothing else: no network, no script, no font. Figures over time are those of the PCN
// paper (NSDI'20), Fig. 2 and 3: PAUSE rate, throughput, queues and rates, one scheme
// below the other on the same axes. Others hold what was measured beside the paper's
// numbers, and over the cases of an experiment.
//
// The same runs give the same bytes, as nothing of the time of the machine is in a
// report, but for the table of what each run cost that [WriteMany] begins with.
package report
