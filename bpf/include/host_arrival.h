/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What came to each host of a lab last. The host's arrive program writes it, and its port reads it
 * when the host answers: the time in between is the host's own.
 */
#ifndef PCN_HOST_ARRIVAL_H
#define PCN_HOST_ARRIVAL_H

struct host_arrival {
	u64 t_ns;     /* ideal time; 0: nothing came */
	u32 seq_end;  /* TCP's sequence number behind the packet */
	__be16 sport; /* of the packet */
	u16 dport;    /* of the host's own socket */
};

/* By the port's id. The loader sets how many there are. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct host_arrival);
} host_arrivals SEC(".maps");

#endif
