// SPDX-License-Identifier: Apache-2.0

package tc

//go:generate ../scripts/bpf2go.sh fabric bpf/fabric.bpf.c
//go:generate ../scripts/bpf2go.sh stamp bpf/stamp.bpf.c
//go:generate ../scripts/bpf2go.sh arrive bpf/arrive.bpf.c event_flow
//go:generate ../scripts/bpf2go.sh np bpf/np.bpf.c
//go:generate ../scripts/bpf2go.sh npmarked bpf/np_marked.bpf.c
//go:generate ../scripts/bpf2go.sh rp bpf/rp.bpf.c
//go:generate ../scripts/bpf2go.sh rpdcqcn bpf/rp_dcqcn.bpf.c
//go:generate ../scripts/bpf2go.sh rptimely bpf/rp_timely.bpf.c
//go:generate ../scripts/bpf2go.sh rpibcc bpf/rp_ibcc.bpf.c
//go:generate ../scripts/bpf2go.sh rpqcn bpf/rp_qcn.bpf.c
//go:generate ../scripts/bpf2go.sh firstrtt bpf/first_rtt.bpf.c
//go:generate ../scripts/bpf2go.sh wred bpf/wred.bpf.c
//go:generate ../scripts/bpf2go.sh syn bpf/syn.bpf.c
