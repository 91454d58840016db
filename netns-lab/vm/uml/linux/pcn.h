/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PCN_H
#define PCN_H

#include <linux/types.h>

bool pcn_jit_address(unsigned long address);
bool pcn_bpf_fault(unsigned long ip, unsigned long address, void *mcontext);

#endif
