// SPDX-License-Identifier: Apache-2.0

// Package experiment reads experiment files: what a paper's experiment is made
// of, in the paper's own units.
//
// A file is YAML, read strictly: [Parse] refuses unknown keys, missing units,
// duplicate and unknown names, and values out of range, says where each of them
// is (file:line:column) and what to write instead, and reports all it finds in
// one go.
//
// A file may have cases, which are the file with some values replaced: [Experiment.Case]
// returns one of them as an experiment of its own.
//
// A file may name others, of a topology or a trace: [Load] reads them too, and adds them to
// the experiment's source. [Topology.Network] builds the network of a topology.
//
// All times are in the paper's time, which dilation slows down on the machine
// that runs the experiment, and t = 0 is when the bursts start. KB is 1000 bytes,
// as in the papers.
package experiment
