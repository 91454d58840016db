/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a congestion control describes its scheme, beside its parameters (algo/param.h). The texts
 * stand on the variable `params` of the control's object, and package config/scheme reads them.
 *
 * An attribute may depend on a parameter: SCHEME("notification", "pcn when feedback is cnp or
 * auto"). With the prefix "tcd." it replaces the attribute where switches mark by TCD: the scheme's
 * name with "+tcd".
 *
 *	name		the scheme's name in experiments, if it is not the control's
 *	section		the key of its parameters in experiments, if it is not the control's name
 *	title		one line
 *	source		where the algorithm is from
 *	sender		rate: it is paced; window; or line: nothing controls it
 *	marker		how switches mark: npecn, red, fecn, qcn, or a rule of your own,
 *			"own ./mark.h". Default: none
 *	at_kmax		all: red marks for certain at K_max itself, and not only above it
 *	notification	how receivers answer marks: pcn, marked (a CNP for a mark), or your own
 *			notification point, "own ./np.c". Default: none
 *	hears		what the reaction point in this object takes: cnp or cnm. Default: none
 *	ecn		needed: flows are useless without ECN
 *	accecn		yes: TCP negotiates Accurate ECN, and its ACKs count marks
 *	counts_acks	yes: the sender counts the marks that ACKs report, in windows of the
 *			notification point's T
 *	delayed_ack	yes: receivers acknowledge every second packet
 *	telemetry	int: switches write telemetry into packets, and ACKs bring it. Only the
 *			simulator's do
 *	first_rtt	drop: packets of the first round trip are not ECN-capable, and a lossy
 *			network drops them early
 *	min_rate	a formula of the least rate of a flow, if there is no parameter min_rate
 *	bursts_by	"KEY or KEY": with these parameters at 0 min_tso_segs answers as TCP
 *			does without it, and the loader leaves it out
 *	tcd		yes: the control understands TCD's marks
 *	tcd.values	the section whose marking and notification count with TCD, if this
 *			control has none
 */
#ifndef PCN_SCHEME_H
#define PCN_SCHEME_H

#include "../algo/param.h"

#define SCHEME(attribute_, value_) DESCRIBE("scheme:" attribute_ "=" value_)

#endif
