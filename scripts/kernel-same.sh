#!/bin/sh
# Builds one source of Linux, and then 20 times with TCP's files compiled by other compilers and
# options, and says of each kernel whether the suite tcp gives the same bytes as on the first. All
# builds are one kernel of pcn, "same". What has ended is kept: run it again to go on.
# shellcheck disable=SC2086 # options and names of files are several words
set -eu
if [ $# -lt 2 ]; then
	echo "usage: $0 SOURCE WORK [OPTION...]: SOURCE is as of pcn kernel build, WORK is" \
		"a folder for results, options are pcn suite run's, such as --only tcp-loss" >&2
	exit 2
fi
source=$1
mkdir -p "$2/bin"
work=$(realpath "$2")
shift 2
pcn=${PCN:-$(pwd)/bin/pcn}
kernel=${XDG_CACHE_HOME:-$HOME/.cache}/pcn/kernel/own/same
tcp="tcp tcp_input tcp_output tcp_timer tcp_recovery tcp_cong tcp_cubic tcp_bbr tcp_vegas tcp_dctcp"
files="$(printf 'net/ipv4/%s.c ' $tcp)net/sched/sch_fq.c kernel/time/hrtimer.c"

# variants prints NAME COMPILER OPTIONS. The options stand behind the kernel's own, so they win.
# Files of clang can't stand beside gcc's: BTF then has two Qdisc_ops, and no qdisc in BPF loads.
variants() {
	for cc in gcc-11 gcc-12; do
		cat <<-END
			$cc-Os $cc -Os
			$cc-O3 $cc -O3
			$cc-fp $cc -fno-omit-frame-pointer
			$cc-Os-fp $cc -Os -fno-omit-frame-pointer
			$cc-noinline $cc -fno-inline-small-functions
			$cc-align $cc -falign-functions=64 -falign-loops=32
			$cc-noschedule $cc -fno-schedule-insns2 -fno-reorder-blocks
			$cc-nogcse $cc -fno-gcse -fno-tree-vrp -fno-tree-pre -fno-ipa-sra
			$cc-haswell $cc -march=haswell -mno-avx2 -mno-fma
		END
	done
	echo "gcc-11-O2 gcc-11 -O2"
	echo "pattern gcc-12 -ftrivial-auto-var-init=pattern"
}

# In front of all others, a gcc that compiles those files as $work/variant says.
gcc=$(command -v gcc)
cat >"$work/bin/gcc" <<END
#!/bin/sh
for a; do
	case \$a in
	$(echo "$files" | sed 's/ / | /g'))
		read -r compiler options <"$work/variant"
		exec \$compiler "\$@" \$options
		;;
	esac
done
exec $gcc "\$@"
END
chmod +x "$work/bin/gcc"

# try NAME COMPILER OPTIONS builds a variant, and compares it.
try() {
	name=$1
	shift
	echo "$*" >"$work/variant"
	for file in $files; do
		rm -f "$kernel/tree/${file%.c}.o"
	done
	status=0
	rm -rf "$work/results/$name"
	{ PATH="$work/bin:$PATH" "$pcn" kernel build "$source" --as same &&
		"$pcn" suite run tcp --kernel same --against "$work/results/reference" \
			--out "$work/results/$name" $only; } >"$work/$name.log" 2>&1 || status=$?
	image=$(sha256sum "$kernel/linux" | cut -c1-12)
	echo "$image exit status $status: $(tail -1 "$work/$name.log")" >"$work/$name.verdict"
}

if [ ! -f "$work/results/reference/suite.json" ]; then
	"$pcn" kernel build "$source" --as same
	"$pcn" suite run tcp --kernel same --seeds 1 --out "$work/results/reference" "$@"
fi
only=$*
variants | while read -r name compiler options; do
	if ! command -v "$compiler" >/dev/null; then
		echo "$name: no $compiler here"
		continue
	fi
	[ -f "$work/$name.verdict" ] || try "$name" "$compiler" $options </dev/null
	echo "$name: $(cat "$work/$name.verdict")"
done
