/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * In-band network telemetry: what the switches wrote into the packet that the latest ACK is of.
 * Only the simulator has such switches. It writes this before it tells a control of an ACK.
 */
#ifndef PCN_TELEMETRY_H
#define PCN_TELEMETRY_H

#include "../algo/hpcc.h"

struct int_header telemetry;

#endif
