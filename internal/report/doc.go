// SPDX-License-Identifier: Apache-2.0

// Package report writes the runs of experiments as one self-contained HTML file: it needs no
// network and no font. A script lets readers zoom, hide curves and read values; without it they see
// the same figures as SVG.
//
// Figures over time follow the PCN paper (NSDI'20), Fig. 2 and 3: PAUSE rate, throughput, queues
// and rates, one scheme below the other on the same axes. Other figures show measured values beside
// the paper's numbers, and over the cases of an experiment.
//
// The same runs give the same bytes, since reports do not depend on the machine. The exception is
// the table of costs at the top of a report by [WriteMany].
package report
