/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel types that the programs use, declared by hand.
 *
 * Only the fields in use are listed. CO-RE finds their offsets in the BTF of the running kernel. So
 * the objects are the same bytes wherever they are built, and run on every kernel that has the
 * fields.
 */
#ifndef PCN_KERNEL_H
#define PCN_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;

/* The names that libbpf's headers and UAPI structs use. */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s8 __s8;
typedef s16 __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u64 __be64;
typedef u16 __sum16;
typedef u32 __wsum;

typedef _Bool bool;
#define true  1
#define false 0
#define NULL  ((void *)0)

/* UAPI constants: map types and flags of bpf.h, and what packets look like. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

#define BPF_F_NO_PREALLOC 1

#define BPF_RB_NO_WAKEUP 1

enum {
	TCX_NEXT = -1,
	TCX_PASS = 0,
	TCX_DROP = 2,
};

#define ETH_ALEN 6
#define ETH_P_IP 0x0800

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17

struct ethhdr {
	u8 h_dest[ETH_ALEN];
	u8 h_source[ETH_ALEN];
	__be16 h_proto;
} __attribute__((packed));

struct iphdr {
	u8 ihl : 4, version : 4; /* little endian, as every machine we run on */
	u8 tos;
	__be16 tot_len;
	__be16 id;
	__be16 frag_off;
	u8 ttl;
	u8 protocol;
	__sum16 check;
	__be32 saddr;
	__be32 daddr;
};

struct tcphdr {
	__be16 source;
	__be16 dest;
	__be32 seq;
	__be32 ack_seq;
	u8 res1 : 4, doff : 4;
	u8 flags;
	__be16 window;
	__sum16 check;
	__be16 urg_ptr;
};

#define TCP_FIN 1 /* of tcphdr.flags */

struct udphdr {
	__be16 source;
	__be16 dest;
	__be16 len;
	__sum16 check;
};

/* The tc programs' context, as in uapi/linux/bpf.h: the verifier rewrites these accesses. */
struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 napi_id;
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs; /* 5.1 */
	u64 sk;
	u32 gso_size; /* 5.7; payload of a segment; 0: the skb is one packet */
};

/* A pointer in a struct, with the layout of the BPF object also in the simulator. */
#ifdef __wasm__
#define POINTER(type_, name_)                                                                      \
	union {                                                                                    \
		type_ *name_;                                                                      \
		u64 name_##_bits;                                                                  \
	}
#else
#define POINTER(type_, name_) type_ *name_
#endif

#ifdef __wasm__ /* for the simulator: there are no other types to relocate to */
#include "simulator.h"
#define long long long /* 64 bits, as for BPF */
#else
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct net {
	u64 net_cookie;
};

struct net_of {
	POINTER(struct net, net);
};

struct net_device {
	int group;
	struct net_of nd_net;
};

struct netdev_queue {
	struct net_device *dev;
};

struct sk_buff {
	struct net_device *dev;
	char cb[48];
	s64 tstamp;
	u32 len;
	u32 mark;
	u32 priority;
	u32 truesize;
};

struct qdisc_skb_head {
	u32 qlen;
};

struct gnet_stats_queue {
	u32 qlen;
	u32 backlog;
	u32 drops;
	u32 requeues;
	u32 overlimits;
};

struct Qdisc {
	u32 limit;
	struct netdev_queue *dev_queue;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

struct qdisc_skb_cb {
	u8 data[20];
};

struct nlattr;
struct netlink_ext_ack;

struct in6_addr_words {
	u32 u6_addr32[4];
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile unsigned char skc_state;
	struct net_of skc_net;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock_af_ops {
	u16 net_header_len;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	POINTER(const struct inet_connection_sock_af_ops, icsk_af_ops);
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

/* State of the kernel's CUBIC, in icsk_ca_priv. BIC's has the same name, and no origin point. */
struct bictcp {
	u32 cnt;
	u32 bic_origin_point;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 rcv_nxt;
	u32 rcv_wnd;
	u32 rcv_wup;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 prior_cwnd;	 /* when a reduction began */
	u32 app_limited; /* the sender had nothing more to send; 0: it had */
	u32 mss_cache;
	u32 srtt_us;
	u32 total_retrans;
	u32 delivered;
	u32 delivered_ce;
	u32 data_segs_out;
	u64 bytes_sent; /* payload, retransmissions too */
	u32 packets_out;
	u64 tcp_wstamp_ns; /* when pacing lets the next packet leave */
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 rate_delivered;    /* packets, the delivery rate's latest sample */
	u32 rate_interval_us;  /* in this time */
	struct minmax rtt_min; /* us */
	u16 tcp_header_len;
	u8 ecn_flags;
};

struct rate_sample {
	long rtt_us;	     /* of this ACK; -1: not measured */
	u32 acked_sacked;    /* packets newly acknowledged */
	u32 prior_in_flight; /* packets, before this ACK */
	bool is_app_limited;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

#ifdef __wasm__
#undef long
#else
#pragma clang attribute pop
#endif

/* In map values: two CPUs may handle the same flow at once. */
struct bpf_spin_lock {
	u32 val;
};

/* The open-coded numeric iterator (6.4): Debian 12's libbpf has no bpf_for. */
struct bpf_iter_num {
	u64 __opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end)
	__attribute__((section(".ksyms"), weak));
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __attribute__((section(".ksyms"), weak));
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __attribute__((section(".ksyms"), weak));

/* From a tc program's __sk_buff to the sk_buff behind it. */
extern void *bpf_cast_to_kern_ctx(void *obj) __attribute__((section(".ksyms"), weak));

/* An argument of a global function that is a trusted pointer. libbpf 1.1 lacks the macro. */
#define __arg_trusted __attribute__((btf_decl_tag("arg:trusted")))
#define __arg_nonnull __attribute__((btf_decl_tag("arg:nonnull")))

/*
 * loaded(v): a pointer to a const volatile struct that the loader sets. Without the barrier the
 * compiler would use the values in the source.
 */
#define loaded(v)                                                                                  \
	({                                                                                         \
		const void *loaded_ = (const void *)&(v);                                          \
		asm volatile("" : "+r"(loaded_));                                                  \
		loaded_;                                                                           \
	})

/* bounded(n): runs the body at most n times. The verifier checks it once, however large n is. */
#define bounded(n)                                                                                 \
	for (struct bpf_iter_num it_ __attribute__((cleanup(bpf_iter_num_destroy))),               \
	     *start_ __attribute__((unused)) = (bpf_iter_num_new(&it_, 0, (n)), &it_);             \
	     bpf_iter_num_next(&it_);)

#endif
