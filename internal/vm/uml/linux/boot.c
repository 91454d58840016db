// SPDX-License-Identifier: GPL-2.0
/* What a machine is told, and what it waits for, when it boots. */
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/kernel.h>
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

bool pcn_draw_hashes = true;

/* The run's seed, and the state of the numbers that TCP draws: see pcn.h. */
static u64 pcn_state;

static int __init pcn_seed(char *seed)
{
	return kstrtou64(seed, 10, &pcn_state) == 0;
}
__setup("pcn.seed=", pcn_seed);

/* Steele, Lea and Flood: Fast splittable pseudorandom number generators, OOPSLA 2014. */
u32 pcn_random_below(u32 ceil)
{
	u64 z = (pcn_state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (u32)(((z ^ (z >> 31)) >> 32) * ceil >> 32);
}
