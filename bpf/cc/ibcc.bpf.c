// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibcc: InfiniBand's congestion control of each queue pair, as a TCP congestion control.
 *
 * BECNs raise CCTI: the reaction point in this file calls control_cnp (include/react.h). Every ACK
 * brings CCTI_Timer up to date and sets the pacing rate: the line rate less the delays of
 * CCT[CCTI]. The window never binds.
 *
 * Highlights:
 *   1. Packets are TCP's: FECN is CE in the IP header, and BECN is a CNP. ECN must be negotiated,
 *      or no packet is marked.
 *   2. TCP's pacing spreads the delays evenly: the rate is their mean.
 *   3. No timer runs. CCTI is brought up to date at each ACK and BECN.
 *   4. A loss, for which InfiniBand has no rule, counts as a BECN.
 *
 * Try it: pcn run FILE --algo ibcc
 */
#include "include/control.h"
#include "algo/dcqcn_np.h"
#include "algo/ibcc.h"

/* clang-format off */
const volatile struct ibcc_params params
	SCHEME("title", "InfiniBand's congestion control: a longer pause behind each packet "
		"for every BECN")
	SCHEME("source", "InfiniBand Architecture Specification, volume 1, annex A10")
	SCHEME("sender", "rate")
	SCHEME("marker", "fecn")
	SCHEME("notification", "marked")
	SCHEME("hears", "cnp")
	SCHEME("ecn", "needed")
	SCHEME("min_rate", "line_rate / (cct_delay + 1)")
	SCHEME("tcd", "yes")
	= {};
/* clang-format on */

/* Parameters of receivers. */
/* clang-format off */
const struct dcqcn_np_params np_params
	OF("interval_ns", "key:becn_interval")
	OF("interval_ns", "default:0")
	OF("interval_ns", "doc:Least time between two BECNs of a flow; 0: a BECN for every "
	   "marked packet")
	= {};
/* clang-format on */

struct ibcc_flow {
	FLOW_HEAD;
	struct ibcc_rp rp;
};

#define CONTROL	      ibcc
#define flow_entry    ibcc_flow
#define CONTROL_FLAGS TCP_CONG_NEEDS_ECN

static __always_inline void control_start(struct flow_entry *flow)
{
	ibcc_rp_init(&flow->rp, loaded(params));
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	ibcc_rp_advance(&flow->rp, loaded(params), e->now_ns);
}

/* A CNP is a BECN. */
static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	if (event->ue)
		ibcc_rp_ue(&flow->rp, loaded(params), event->now_ns);
	else
		ibcc_rp_becn(&flow->rp, loaded(params), event->now_ns);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	ibcc_rp_becn(&flow->rp, loaded(params), now_ns);
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return ibcc_rp_rate_bps(&flow->rp, loaded(params));
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	ibcc_rp_set_rate(&flow->rp, loaded(params), rate_bps);
}

static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

#define CONTROL_CNP_IS_CE 1
#define CONTROL_OBEYS_CNPS_ALONE
#include "include/rate_control.h"
#include "include/react.h"
