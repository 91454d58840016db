// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * powertcp: PowerTCP's sender as a congestion control, for the simulator.
 *
 * Highlights:
 *   1. Its switches write telemetry into packets, and receivers echo it. No qdisc of ours and no
 *      TCP option does that, so the scheme is refused on Linux.
 *   2. It is paced, and has a window of its rate times tau.
 *
 * Try it: pcn run powertcp
 */
#include "include/control.h"
#include "algo/powertcp.h"

/* clang-format off */
const volatile struct powertcp_params params
	SCHEME("title", "PowerTCP: the rate follows current times voltage of the path")
	SCHEME("source", "Addanki et al., PowerTCP: Pushing the Performance Limits of "
		"Datacenter Networks, NSDI 2022")
	SCHEME("sender", "rate")
	SCHEME("telemetry", "int")
	= {};
/* clang-format on */

#define CONTROL	  powertcp
#define ALGORITHM powertcp
#include "include/telemetry_control.h"
