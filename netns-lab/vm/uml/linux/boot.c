// SPDX-License-Identifier: GPL-2.0
/* What a machine is told, and what it waits for, when it boots. */
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/moduleparam.h>
#include "pcn.h"

unsigned int pcn_pacing_shift = 10;
core_param(pcn_pacing_shift, pcn_pacing_shift, uint, 0444);

/*
 * A machine has a time when it has booted. Where CPUs take none it would still be 0, and Go's
 * runtime does not start at 0.
 */
static int __init pcn_booted(void)
{
	msleep(1000);
	return 0;
}
late_initcall(pcn_booted);
