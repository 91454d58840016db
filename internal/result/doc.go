// SPDX-License-Identifier: Apache-2.0

// Package result holds the data of a run: one scheme in one case of an experiment. It writes and
// reads result folders, evaluates metrics, compares schemes, and finds where two runs first differ.
//
// A result folder has these files:
//
//	manifest.json    settings of the run, and whether it is valid
//	experiment.yaml  the experiment file as it was read
//	flows.csv        a row for each flow
//	ports.csv        a row for each egress port
//	series.csv       a row for each flow, TCP sender or port, and each bin of time
//	pfc.csv          a row for each PAUSE and RESUME frame
//	pause_repeats.csv, completion.csv, states.csv, trace.csv
//	                 only if the run has such data: see [PauseRepeats], [Completion], [State]
//	                 and [github.com/pcn-linux/pcn/internal/workload]
//
// Times are in ns and rates in bit/s, both in the paper's time, with t = 0 at the start of the
// bursts. Only the "wall" object of the manifest is in the machine's time. Apart from it, two
// deterministic runs of the same experiment write the same bytes.
//
// Folders of older versions can be read. Columns that they lack read as 0.
package result
