// SPDX-License-Identifier: Apache-2.0

// Package experiment reads experiment files, which describe a paper's experiment in the paper's own
// units.
//
// A file is YAML, read strictly: [Parse] rejects unknown keys, missing units, duplicate and unknown
// names, and values out of range. It reports all mistakes at once, each with its position
// (file:line:column) and what to write instead.
//
// A file may have cases, which replace some values: [Experiment.Case] returns one of them as an
// experiment of its own.
//
// A file may name others, such as a topology or a trace: [Load] reads them too, and embeds them in
// the experiment's source. [Topology.Network] builds the network of a topology.
//
// All times are in the paper's time, and t = 0 is when the bursts start. Dilation slows this time
// down on the machine that runs the experiment. KB is 1000 bytes, as in the papers.
package experiment
