// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* stamp for a lab alone, where every packet with a class is plain IPv4. */
#define PCN_LAB
#include "stamp.bpf.c"
