// SPDX-License-Identifier: Apache-2.0

package tc

//go:generate ../scripts/bpf2go.sh fabric bpf/fabric.bpf.c
//go:generate ../scripts/bpf2go.sh router bpf/router.bpf.c
//go:generate ../scripts/bpf2go.sh stamp bpf/stamp.bpf.c
//go:generate ../scripts/bpf2go.sh --untyped stamplab bpf/lab_stamp.bpf.c
//go:generate ../scripts/bpf2go.sh arrive bpf/arrive.bpf.c event_flow
//go:generate ../scripts/bpf2go.sh np bpf/np.bpf.c
//go:generate ../scripts/bpf2go.sh --untyped nplab bpf/lab_np.bpf.c
//go:generate ../scripts/bpf2go.sh npmarked bpf/np_marked.bpf.c
//go:generate ../scripts/bpf2go.sh wred bpf/wred.bpf.c
//go:generate ../scripts/bpf2go.sh port bpf/port.bpf.c
//go:generate ../scripts/bpf2go.sh syn bpf/syn.bpf.c

// The tests read and write the entries of controls' flow tables. The objects that they load come
// along with package scheme.
//
//go:generate ../scripts/bpf2go.sh --test rp ../bpf/cc/pcn.bpf.c pcn_flow pcn_rp_params rp_source
//go:generate ../scripts/bpf2go.sh --test rpdcqcn ../bpf/cc/dcqcn.bpf.c dcqcn_flow dcqcn_params
//go:generate ../scripts/bpf2go.sh --test rptimely ../bpf/cc/timely.bpf.c timely_flow timely_params
//go:generate ../scripts/bpf2go.sh --test rpibcc ../bpf/cc/ibcc.bpf.c ibcc_flow ibcc_params
//go:generate ../scripts/bpf2go.sh --test rpqcn ../bpf/cc/qcn.bpf.c qcn_flow qcn_rp_params
//go:generate ../scripts/bpf2go.sh --test firstrtt ../bpf/cc/ldcp.bpf.c ldcp_flow
