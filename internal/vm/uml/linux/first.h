/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Each C file of the kernel includes this first. It is empty: where first.h.gch is, the compiler
 * reads that in its place. See common.h.
 */
