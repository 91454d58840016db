// SPDX-License-Identifier: Apache-2.0

package npecn

//go:generate ../scripts/bpf2go.sh --untyped npecn bpf/npecn.bpf.c port port_config port_state link_params port_counters tclass node packet event_kind event_pfc event_repeat event_queue event_flow event_off event_start event_detected event_storm guard link_event link_ring pfc_watchdog_action rate_change port_limit late_limit lateness marker use drop_cause tcd_state
