// SPDX-License-Identifier: Apache-2.0

// Package hpcc reads topology and flow files of HPCC's simulator and of the simulators derived from
// it. The format is that of simulation/scratch/third.cc in
// github.com/alibaba-edu/High-Precision-Congestion-Control.
//
// A file consists of numbers and words between white space. Its first numbers say how many entries
// follow; text after the last entry is a comment.
package hpcc
