// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* cnm.h as programs that a Go test can run. */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/cnm.h"

u8 sampled[sizeof(struct ethhdr) + CNM_MSDU_LEN];
u8 frame[CNM_FRAME_LEN];

struct build_args {
	u64 cpid;
	s64 qoff_bytes;
	s64 qdelta_bytes;
	u16 msdu_len;
	u8 qntz_fb;
	u8 priority;
	u32 pad;
};

/* From sampled to frame. Returns the frame's length. */
SEC("syscall")
int build(struct build_args *a)
{
	return cnm_build((void *)frame, sampled, a->msdu_len, a->cpid, a->qntz_fb, a->qoff_bytes,
			 a->qdelta_bytes, a->priority);
}

struct check_args {
	u32 len;
};

SEC("syscall")
int well_formed(struct check_args *a)
{
	return cnm_well_formed((void *)frame, a->len);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
