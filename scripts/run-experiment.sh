#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds pcn, and runs EXPERIMENT on ENGINE with ARGUMENTS; results are in OUT. action.yml calls it
# in the folder of whoever uses the action. Its exit code is that of pcn run: 3 if a bound is not
# met, 4 if the run can't be believed, 6 if it is too short to be judged.
set -euo pipefail
: "${EXPERIMENT:?want a name or a path}" "${ENGINE:=sim}" "${ARGUMENTS:=}" "${OUT:=pcn-results}"
source=$(cd "$(dirname "$0")/.." && pwd)

# A control of one's own is compiled with clang-19.
if [[ "$ARGUMENTS $EXPERIMENT" == *.c* ]] && ! command -v clang-19 > /dev/null; then
	sudo apt-get update
	sudo apt-get install --yes --no-install-recommends clang-19 lld-19 llvm-19
fi
make --no-print-directory -C "$source" build
if [ "$ENGINE" = kernel ]; then
	if ! command -v qemu-system-x86_64 > /dev/null; then
		sudo apt-get update
		sudo apt-get install --yes --no-install-recommends qemu-system-x86 qemu-system-data
	fi
	"$source/bin/pcn" setup
fi
read -ra arguments <<< "$ARGUMENTS"
exec "$source/bin/pcn" run "$EXPERIMENT" --engine "$ENGINE" --out "$OUT" "${arguments[@]}"
