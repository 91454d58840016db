// SPDX-License-Identifier: Apache-2.0

// Package result is the data of one run of one scheme of an experiment: what a
// run leaves in its folder, and what is measured on it.
//
// A folder holds
//
//	manifest.json    what ran, and whether it can be believed
//	experiment.yaml  the experiment file, as it was read
//	flows.csv        a row for each flow
//	ports.csv        a row for each egress port
//	series.csv       a row for each flow or port, and bin of time
//	pfc.csv          a row for each PAUSE and RESUME
//
// Times are in ns of the paper's time, with t = 0 at the start of the bursts, and
// rates in bit/s of the paper's time. Only the wall object of the manifest is in
// the time of the machine: two deterministic runs of the same experiment leave the
// same bytes but for that.
package result
