// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * npecn: the port of an emulated lossless switch or host, as a qdisc.
 *
 *	         +---------+      +--------+      +-----------------+      +-------+
 *	enqueue  | 8 class |      | strict |      | wire: serialise,|      | carry |  dequeue
 *	-------> | queues  | ---> | prio-  | ---> | propagate       | ---> |       | ------->
 *	         |         |      | rity   |      |                 |      |       |
 *	         +---------+      +--------+      +-----------------+      +-------+
 *	 queue.h, account.h      transmit.h, judge.h
 *
 * Ideal time. Every packet has an ideal arrival. A port computes
 *	start   = max(arrival, link_free, RESUME)	link_free = start + len * 8 / rate
 *	deliver = link_free + delay
 * and sends `deliver` along with the packet; the next port takes it as the arrival. A late timer
 * changes when work is done, never what is computed. Class queues are sorted by ideal arrival. A
 * port with a propagation delay decides only what starts before now - lag, when everything that
 * ideally arrived by then is there: conservative simulation, with the link delay as lookahead.
 * Timers are rounded up to the quantum.
 *
 * A class queue, as TCD's paper names its states:
 *
 *	            a packet arrives           PAUSE takes effect, or the
 *	                                       first packet lacks credits
 *	  +-------+ -----------------> +-----+ ------------------------> +-----+
 *	  | empty |                    | ON  |                           | OFF |
 *	  +-------+ <----------------- +-----+ <------------------------ +-----+
 *	            the last packet     |   ^  RESUME takes effect, or
 *	            starts              |   |  credits for it (end_off)
 *	                                +---+
 *	                            a packet starts
 *
 * What takes effect at an empty queue is applied when its next packet arrives.
 *
 * PFC (pfc.h). Bytes are counted per ingress port and class from ideal arrival to the start of
 * transmission. Crossing XOFF or XON posts {effect time = now + delay, pause or resume} to the
 * upstream port, in its ring of link events. A paused port looks at its ring every delay / 2 and
 * applies each event at its ideal time. An event takes effect one delay after it was posted, so it
 * is always seen in time.
 *
 * A watchdog of PFC (watchdog.h) looks at the lossless queues at ideal times too, between two
 * starts. Once a packet has come to a port, its watchdog looks at each poll.
 *
 * Classes with weights (rounds.h): of the classes that can start a packet at the same time, it is
 * the turn of one. Those without a weight go before.
 *
 * CBFC (cbfc.h), in place of PFC. Blocks are counted likewise. What leaves is told to the upstream
 * port at the end of the update period, in the same ring: {effect time = then + delay, blocks}. The
 * upstream port may send what it has credits for.
 *
 * Marking (judge.h). Beside the marker, a port can have detectors that only say what they would do:
 * NP-ECN, ECN by a threshold, FECN and TCD. A user's own marker is compiled in with -DOWN_MARKER:
 * include/marker.h.
 *
 * A BPF qdisc can neither write packets nor make them. A mark is a bit in qdisc_skb_cb->data; the
 * far end of the veth applies it (tc/bpf/fabric.bpf.c, arrive.bpf.c). A sample of QCN is a few
 * bits, of which the far end makes the CNM and sends it back. So a CNM comes a round trip of one
 * link late.
 *
 * Configuration, counters and queues are in maps, by the device's group (port.h):
 *	ip link set dev eth0 group 3; pcn writes ports[3]; tc qdisc add dev eth0 root npecn
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "include/clock.h"
#include "include/events.h"
#include "include/port.h"
#include "host.h"
#include "transmit.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
} __attribute__((preserve_access_index));

extern void bpf_qdisc_skb_drop(struct sk_buff *p, struct bpf_sk_buff_ptr *to_free) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP	 1
#define EBUSY		 16
#define ENODEV		 19

/* Keeps the types in BTF, for bpf2go. */
const enum port_limit *unused_port_limit __attribute__((unused));
const enum late_limit *unused_late_limit __attribute__((unused));
const enum marker *unused_marker __attribute__((unused));
const enum use *unused_use __attribute__((unused));
const enum drop_cause *unused_drop_cause __attribute__((unused));
const enum tcd_state *unused_tcd_state __attribute__((unused));
const enum pfc_watchdog_action *unused_action __attribute__((unused));

/* carried_words: what the packet carries, as words: clang would access the bytes one by one. */
static __always_inline u32 *carried_words(struct sk_buff *skb)
{
	struct qdisc_skb_cb *cb = (void *)skb->cb;
	void *data = cb->data;

	return data;
}

/*
 * departure_ns: a packet made here arrives now, or at the departure time that its sender gave it
 * (SO_TXTIME), so that bursts of many hosts can start at the same instant.
 */
static __always_inline u64 departure_ns(const struct sk_buff *skb, u64 now)
{
	u64 t_ns = (u64)skb->tstamp >> dilation_shift;

	return t_ns > now ? t_ns : now;
}

/* arrival_ns: the ideal arrival that a packet carries that came by a port of ours; else now. */
static __always_inline u64 arrival_ns(struct sk_buff *skb)
{
	const u32 *words = carried_words(skb);

	if ((words[CARRY_WORD] & CARRY_MAGIC_MASK) != CARRY_MAGIC)
		return now_ns();
	return (u64)words[CARRY_HIGH] << 32 | words[CARRY_LOW];
}

SEC("struct_ops/npecn_enqueue")
int BPF_PROG(npecn_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	u32 id = sch->limit, c = skb->priority & (CLASSES - 1);
	u32 len = skb->len, mark = skb->mark;
	u32 ingress = (mark & MARK_INGRESS_MASK) == MARK_INGRESS ? mark & MARK_PORT_MASK : 0;
	struct port *p = port_of_qdisc(sch), *from;
	u64 t_ns, reached_ns, *dropped;
	struct tclass *k;
	struct node *n;
	struct slot *s;
	bool late;
	u32 i;

	if (!p)
		goto drop_silent;
	if (uses & USE_PARTITIONS && (mark & MARK_INGRESS_MASK) == MARK_PARTED) {
		count_parted(mark & MARK_PORT_MASK);
		goto drop_silent;
	}
	if (ingress) {
		t_ns = reached_ns = arrival_ns(skb);
		from = host_link(ingress);
		if (from) {
			if (link_loses(from))
				goto drop_silent;
			t_ns = reached_ns = link_arrival(from, t_ns);
		}
	} else {
		reached_ns = now_ns();
		t_ns = departure_ns(skb, reached_ns);
		watch_host(p, id, c, skb, reached_ns);
	}
	k = &p->classes[c];
	dropped = &p->counters.dropped[DROP_CLASS];
	if (!k->queue.mask)
		goto drop;
	dropped = &p->counters.dropped[DROP_RING];
	if (ring_full(&k->queue))
		goto drop;
	n = node_of(p);
	dropped = &p->counters.dropped[DROP_BUFFER];
	if (!n || (n->buffer_bytes && n->used_bytes + len > n->buffer_bytes))
		goto drop;

	if (t_ns < p->state.decided_ns)
		p->counters.causality++;
	i = ring_sort_in(&k->queue, t_ns);
	s = slot_at(&k->queue, i);
	if (!s)
		goto drop;
	late = (s32)(i - k->arrived) < 0;
	s->packet.t_ns = t_ns;
	s->packet.len = len;
	s->packet.ingress = ingress;
	s->packet.not_ect = ingress && mark & MARK_NOT_ECT;
	skb = bpf_kptr_xchg(&s->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	k->queue.tail++;
	p->state.backlogged |= 1 << c;

	if (late) { /* among those that count as arrived */
		k->arrived++;
		queue_add(p, k, c, &s->packet);
	} else if (i == k->arrived) {
		k->next_ns = t_ns;
	}
	p->counters.enqueued_packets++;
	p->counters.enqueued_bytes += len;
	if (t_ns < p->state.serve_ns)
		p->state.serve_ns = t_ns;
	sch->q.qlen++;
	sch->qstats.backlog += len;

	buffer_account(n, len);
	return NET_XMIT_SUCCESS;
drop:
	(*dropped)++;
	p->counters.lossy += k->config.lossy;
	if (ingress)
		return_credits(ingress, c, len, t_ns);
drop_silent:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

/*
 * carry: write the ideal delivery and the verdict into the packet. A global function, for its
 * argument's tag: from 7.3 on the verifier lets no program write to an sk_buff that it took out of
 * a map, unless it is passed as trusted.
 */
__noinline int carry(struct sk_buff *skb __arg_trusted, u64 t_ns, u32 verdict, u32 queue, u32 id)
{
	u32 *words = carried_words(skb);

	words[CARRY_WORD] = CARRY_MAGIC | verdict;
	words[CARRY_LOW] = t_ns;
	words[CARRY_HIGH] = t_ns >> 32;
	if (verdict >> CARRY_FB_SHIFT & CARRY_FB_MASK) {
		words[CARRY_QUEUE] = queue;
		words[CARRY_PORT] = id;
	}
	return 0;
}

/* round_up: to a multiple of quantum_ns, a power of two. */
static __always_inline u64 round_up(u64 t_ns, u64 quantum_ns)
{
	return (t_ns + quantum_ns - 1) & -quantum_ns;
}

SEC("struct_ops/npecn_dequeue")
struct sk_buff *BPF_PROG(npecn_dequeue, struct Qdisc *sch)
{
	struct port *p = port_of_qdisc(sch);
	u64 now = now_ns(), wake_ns = NEVER, due_ns;
	struct sk_buff *skb;
	struct slot *w;

	if (!p)
		return NULL;
	if (p->state.serve_ns + p->config.lag_ns <= now)
		p->state.serve_ns = serve(p, now, now - p->config.lag_ns);
	if (p->state.gone_packets) {
		sch->q.qlen -= p->state.gone_packets;
		sch->qstats.backlog -= p->state.gone_bytes;
		sch->qstats.drops += p->state.gone_packets;
		p->state.gone_packets = p->state.gone_bytes = 0;
	}
	if (ring_len(&p->state.wire)) {
		w = slot_at(&p->state.wire, p->state.wire.head);
		if (!w)
			return NULL;
		due_ns = w->packet.t_ns - (p->config.delay_ns ? 0 : early_ns);
		if (due_ns <= now) {
			skb = bpf_kptr_xchg(&w->skb, NULL);
			p->state.wire.head++;
			if (!skb)
				return NULL;
			carry(skb, w->packet.t_ns, w->packet.verdict, w->packet.queue,
			      p->config.id);
			count_late(&p->counters.late, w->packet.t_ns, now);
			p->counters.delivered_packets++;
			sch->q.qlen--;
			sch->qstats.backlog -= w->packet.len;
			bpf_qdisc_bstats_update(sch, skb);
			return skb;
		}
		wake_ns = round_up(due_ns, p->config.quantum_ns);
	}
	if (p->state.serve_ns != NEVER) {
		due_ns = round_up(p->state.serve_ns + p->config.lag_ns, p->config.decide_ns);
		if (due_ns < wake_ns)
			wake_ns = due_ns;
	}
	if (wake_ns != NEVER)
		bpf_qdisc_watchdog_schedule(sch, to_kernel_ns(wake_ns), 0);
	return NULL;
}

SEC("struct_ops/npecn_init")
int BPF_PROG(npecn_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	u32 id = sch->dev_queue->dev->group;
	struct port *p = port_of(id);

	if (!p || !p->config.rate_bps)
		return -ENODEV; /* the device's group is no configured port */
	if (p->state.owner)
		return -EBUSY; /* the port has a qdisc, here or at another device */
	p->state.owner = (u64)sch;
	sch->limit = id;
	p->state.serve_ns = NEVER;
	return 0;
}

/* clear_class: free what the class's queue holds. A global function, as next_start. */
__noinline int clear_class(u32 id, u32 c)
{
	struct port *p = port_of(id);

	if (!p)
		return 0;
	queue_clear(p, c);
	p->counters.dropped[DROP_RESET] += ring_flush(&class_at(p, c)->queue);
	return 0;
}

/* clear_wire: free what is on the wire. */
__noinline int clear_wire(u32 id)
{
	struct port *p = port_of(id);

	if (p)
		p->counters.dropped[DROP_RESET] += ring_flush(&p->state.wire);
	return 0;
}

SEC("struct_ops/npecn_reset")
void BPF_PROG(npecn_reset, struct Qdisc *sch)
{
	struct port *p = port_of_qdisc(sch);
	u32 id = sch->limit;

	if (!p)
		return;
	for (u32 c = 0; c < CLASSES; c++)
		clear_class(id, c);
	clear_wire(id);
	p->state.backlogged = 0;
	p->state.serve_ns = NEVER;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

SEC("struct_ops/npecn_destroy")
void BPF_PROG(npecn_destroy, struct Qdisc *sch)
{
	struct port *p = port_of_qdisc(sch);

	if (p)
		p->state.owner = 0; /* reset has freed everything */
}

struct Qdisc_ops {
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct bpf_sk_buff_ptr *);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
	char id[16];
} __attribute__((preserve_access_index));

SEC(".struct_ops.link")
struct Qdisc_ops npecn = {
	.enqueue = (void *)npecn_enqueue,
	.dequeue = (void *)npecn_dequeue,
	.init = (void *)npecn_init,
	.reset = (void *)npecn_reset,
	.destroy = (void *)npecn_destroy,
	.id = "npecn",
};
