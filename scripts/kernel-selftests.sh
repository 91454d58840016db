#!/bin/sh
# Makes controls for pcn of the kernel's own selftests bpf_cubic and bpf_dctcp, from a source of
# Linux and a kernel built of it: pcn run EXPERIMENT --algo cubic,OUT/bpf_cubic.c
#
# pcn registers a control by a link, where the selftests register by a map, and has one in a file.
set -eu
if [ $# -ne 3 ]; then
	echo "usage: $0 SOURCE VMLINUX OUT: needs bpftool (Debian: bpftool)" >&2
	exit 2
fi
progs=$1/tools/testing/selftests/bpf/progs
vmlinux=$2
out=$3
mkdir -p "$out"
# Structures without a name in others need an option of the compiler: give them one.
bpftool btf dump file "$vmlinux" format c |
	sed -E 's/^(\t+)(struct|union) (\w+);$/\1\2 \3 unnamed_\3;/' >"$out/vmlinux.h"
sed 's/<vmlinux.h>/"vmlinux.h"/' "$progs/bpf_tracing_net.h" >"$out/bpf_tracing_net.h"
link='s/SEC("\.struct_ops")/SEC(".struct_ops.link")/'
# The kernel in which experiments run has no file with its options; its ticks are of 1 ms.
sed -e 's/#include <errno.h>/#define EOPNOTSUPP 95/' -e "$link" \
	-e 's/^extern unsigned long CONFIG_HZ __kconfig;/#define CONFIG_HZ 1000UL/' \
	"$progs/bpf_cubic.c" >"$out/bpf_cubic.c"
awk '/^SEC\("\.struct_ops"\)$/ { held = $0; next }
	held != "" { skip = /dctcp_nouse/; if (!skip) print held; held = "" }
	skip { if (/^};/) skip = 0; next }
	{ print }' "$progs/bpf_dctcp.c" | sed "$link" >"$out/bpf_dctcp.c"
# What pcn must know of them: bpf/include/scheme.h has the words.
for control in cubic dctcp; do
	cat >>"$out/bpf_$control.c" <<-END

	#include "include/scheme.h"

	const volatile struct bpf_${control}_params {
		__u32 none;
	} params SCHEME("sender", "window") SCHEME("title", "The selftest bpf_$control of Linux")
	END
done
echo ' = {};' >>"$out/bpf_cubic.c"
cat >>"$out/bpf_dctcp.c" <<'END'
	SCHEME("marker", "red") SCHEME("ecn", "needed") = {};

#include "algo/red.h"
const struct red_params marker_params PREFIX("marking") = {};
END
