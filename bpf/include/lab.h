/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Settings of programs that have code for hosts. A file that defines PCN_LAB is compiled for a lab
 * alone: these settings are constants, all 0, and the compiler leaves out what only hosts need.
 * Else the loader sets them, and the verifier leaves it out. It must first read all of it, which
 * costs a microVM a tenth of a second.
 */
#ifndef PCN_LAB_H
#define PCN_LAB_H

#ifdef PCN_LAB
#define HOST_SETTING static const
static const bool lab_only = true;
#else
#define HOST_SETTING const volatile
static const bool lab_only = false;
#endif

#endif
