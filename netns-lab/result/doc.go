// SPDX-License-Identifier: Apache-2.0

// Package result is the data of one run of one scheme of an experiment, or of one of
// its cases: what a run leaves in its folder, what is measured on it, how it compares
// with runs of other schemes, and where two runs part.
//
// A folder holds
//
//	manifest.json    what ran, and whether it can be believed
//	experiment.yaml  the experiment file, as it was read
//	flows.csv        a row for each flow
//	ports.csv        a row for each egress port
//	series.csv       a row for each flow, TCP sender or port, and bin of time
//	pfc.csv          a row for each PAUSE and RESUME
//	pause_repeats.csv, completion.csv, states.csv, trace.csv
//	                 of runs that have such: see [PauseRepeats], [Completion], [State] and [github.com/pcn-linux/pcn/netns-lab/workload]
//
// Times are in ns of the paper's time, with t = 0 at the start of the bursts, and
// rates in bit/s of the paper's time. Only the wall object of the manifest is in
// the time of the machine: two deterministic runs of the same experiment leave the
// same bytes but for that.
//
// Folders of older versions can be read: a column that they do not have is 0.
package result
