/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a congestion control describes the scheme that it is part of, beside its parameters (algo/param.h). The texts
 * stand on the variable `params` of the control's object, and package config/scheme reads them.
 *
 * An attribute may depend on a parameter: SCHEME("notification", "pcn when feedback is cnp or auto"). With the prefix
 * "tcd." it replaces the attribute where switches mark by TCD, as under the scheme's name with "+tcd".
 *
 *	name		the scheme's name in experiments, if it is not the control's
 *	section		the key of its parameters in experiments, if it is not the control's name
 *	title		one line
 *	source		where the algorithm is from
 *	sender		rate: it is paced; window; or line: nothing controls it
 *	marker		how switches mark: npecn, red, fecn, qcn; or a rule of one's own: "own ./mark.h". Default none
 *	notification	what receivers run to answer marks: pcn, marked (a CNP for a mark), or one's own: "own ./np.c".
 *			Default none
 *	hears		what the reaction point in this object takes: cnp or cnm. Default none
 *	ecn		needed: flows are useless without
 *	accecn		yes: TCP negotiates Accurate ECN, and its ACKs count marks
 *	counts_acks	yes: the sender counts the marks that ACKs tell of, in windows of the notification point's T
 *	delayed_ack	yes: receivers acknowledge every second packet
 *	first_rtt	drop: packets of the first round trip are not ECN-capable, and a lossy network drops them early
 *	min_rate	a formula of the rate that no flow goes below, if no parameter min_rate says it
 *	tcd		yes: the control knows what TCD's marks say
 *	tcd.values	the section whose marking and notification count with TCD, if this one has none
 */
#ifndef PCN_SCHEME_H
#define PCN_SCHEME_H

#include "../algo/param.h"

#define SCHEME(attribute_, value_) DESCRIBE("scheme:" attribute_ "=" value_)

#endif
