// SPDX-License-Identifier: Apache-2.0

// Package hpcc reads the text files of HPCC's simulator, and of those made from it: topologies and flows, as its
// simulation/scratch/third.cc reads them (github.com/alibaba-edu/High-Precision-Congestion-Control).
//
// A file is numbers and words between white space. What follows the last that counts is a comment.
package hpcc
