// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * hpcc: HPCC's sender as a congestion control, for the simulator.
 *
 * Highlights:
 *   1. Its switches write telemetry into packets, and receivers echo it. No qdisc of ours and no
 *      TCP option does that, so the scheme is refused on Linux.
 *   2. It is paced, and has a window of its rate times T.
 *
 * Try it: pcn run hpcc
 */
#include "include/control.h"
#include "algo/hpcc.h"

/* clang-format off */
const volatile struct hpcc_params params
	SCHEME("title", "HPCC: the rate follows what the switches of the path measure")
	SCHEME("source", "Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019")
	SCHEME("sender", "rate")
	SCHEME("telemetry", "int")
	= {};
/* clang-format on */

#define CONTROL	  hpcc
#define ALGORITHM hpcc
#include "include/telemetry_control.h"
