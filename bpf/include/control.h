/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The head of every congestion control. */
#ifndef PCN_CONTROL_H
#define PCN_CONTROL_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "scheme.h"
#include "cnp_event.h"
#include "tcp.h"
#include "window_event.h"
#include "../algo/fixed.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#endif
