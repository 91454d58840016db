// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* np for a lab alone. */
#define PCN_LAB
#include "np.bpf.c"
