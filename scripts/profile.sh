#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Says where the guest's instructions go in a run of one scheme: by phase, by group of functions, by
# function, and a data packet. The microVM counts instructions instead of time, so the numbers are
# exact and the same every time. Counting makes the run take about twice as long.
#
#	scripts/profile.sh hol --algo pcn --duration 19ms
#	FROM=8 TO=18 scripts/profile.sh hol --algo pcn --duration 19ms
#
# Arguments are those of pcn run. FROM and TO choose the simulated milliseconds, from the start of
# the warm-up, that the tables are of; by default the second half of the run. The first one, FROM=0
# TO=1, has all that comes before it: network, programs. What comes after the last has 800 million
# instructions too many: the guest reads its kernel's symbols. The boot is not in it, as runs resume
# a microVM that has booted; this script has one of its own, whose kernel is where its symbols say.
# Needs QEMU with plugins (Debian's has them), gcc, and make setup.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -ge 1 ] || {
	printf 'profile: name the experiment: scripts/profile.sh hol --algo pcn\n' >&2
	exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# A guest that calls mark at each millisecond, and at the last one keeps the kernel's symbols.
awk '{ print } /fmt.Printf\(.*job.ProgressPrefix, done, total\)$/ { print "mark(done == total)" }' \
	cmd/pcn-guest/main.go >"$dir/main.go"
grep -q 'mark(' "$dir/main.go" || {
	printf 'profile: cmd/pcn-guest/main.go reports no progress where this script looks\n' >&2
	exit 1
}
cat >>"$dir/main.go" <<'GO'

func mark(last bool) {
	phase()
	if last {
		_ = os.WriteFile("/proc/sys/kernel/kptr_restrict", []byte("0"), 0)
		if symbols, err := os.ReadFile("/proc/kallsyms"); err == nil {
			_ = os.WriteFile(filepath.Join(guest.ResultDir, "kallsyms"), symbols, 0o644)
		}
	}
}

//go:noinline
func phase() {}
GO
printf '{"Replace": {"%s": "%s"}}\n' "$PWD/cmd/pcn-guest/main.go" "$dir/main.go" \
	>"$dir/overlay.json"
scripts/build-guest.sh "$dir/guest" -overlay="$dir/overlay.json" # as it runs, without symbols
scripts/build-guest.sh "$dir/guest-symbols" -overlay="$dir/overlay.json" -ldflags=-buildid=
go tool nm -n "$dir/guest-symbols" >"$dir/nm"
mark=$(awk '$3 == "main.phase" { print $1 }' "$dir/nm")
printf '{"Replace": {"%s": "%s"}}\n' "$PWD/netns-lab/launch/guest/pcn-guest" "$dir/guest" \
	>"$dir/overlay.json"
CGO_ENABLED=0 go build -overlay="$dir/overlay.json" -o "$dir/pcn" ./cmd/pcn

gcc -O2 -shared -fPIC -o "$dir/count.so" scripts/profile/plugin/count.c
qemu=$(command -v qemu-system-x86_64)
mkdir "$dir/bin"
# QEMU's answer is on descriptor 5: netns-lab/vm/run.go.
cat >"$dir/bin/qemu-system-x86_64" <<SH
#!/usr/bin/env bash
arguments=() counted=()
for a; do
	case \$before in -append) a+=" nokaslr" ;; esac
	case \$a in -incoming) counted=(-plugin "$dir/count.so,out=$dir/counts,mark=$mark") ;; esac
	arguments+=("\$a")
	before=\$a
done
"$qemu" "\${arguments[@]}" "\${counted[@]}" || exit
[ \${#counted[@]} -eq 0 ] || tail -c +4097 /proc/self/fd/5 >"$dir/answer.tar"
SH
chmod +x "$dir/bin/qemu-system-x86_64"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/pcn
mkdir -p "$dir/cache/pcn"
ln -s "$cache/kernel" "$dir/cache/pcn/kernel"
export XDG_CACHE_HOME=$dir/cache
PATH=$dir/bin:$PATH "$dir/pcn" run "$@" --out "$dir/out" >"$dir/log" 2>&1 || {
	code=$?
	[ $code -eq 3 ] || { # 3: a bound is not met, as in a run that was cut short
		cat "$dir/log" >&2
		exit $code
	}
}
tar -xOf "$dir/answer.tar" --wildcards '*kallsyms' >"$dir/kallsyms"
go run ./scripts/profile "$dir/counts" "$dir/kallsyms" "$dir/nm" "${FROM:-0}" "${TO:-0}"
