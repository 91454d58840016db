// SPDX-License-Identifier: Apache-2.0

package npecn

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type port -type tclass -type node -type event_pfc -type event_repeat -type event_queue -type event_off -type event_detected -type pfc_event -type rate_change npecn bpf/npecn.bpf.c
