#!/usr/bin/env bash
# What draws numbers or takes long, and so is not in `.ci/run`: `ci/proof.sh STEP...`, one after the other; `ci/proof.sh --list`
# names them, `ci/proof.sh all` runs them all, for hours. What needs a GPU is in ci/gpu.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A steps=(
    [stress]="ci/stress.sh --seconds 300"
    [soak]="ci/stress.sh --soak --seconds 3600"
    [awaits]="ci/stress.sh awaits"
    [batching]="ci/stress.sh batching --seconds 600"
    [program_cache]="ci/stress.sh program_cache --kills 20"
    [points]="ci/points.sh"
    [seeds]="ci/replay.sh 2000 1"
    [fuzz]="ci/fuzz.sh 600"
    [hypothesis]="env FTCUDA_RANDOM=1 ci/test.sh tests/fuzz"
    [mutants]="ci/mutation.sh"
    [address]="ci/sanitize.sh address"
    [extension]="ci/sanitize.sh extension"
    [profile-11.2]="ci/profile.sh 11.2 tests/promise"
    [profile-11.8]="ci/profile.sh 11.8 tests/promise"
    [profile-tcc]="ci/profile.sh tcc tests/promise"
    [profile-12.0]="ci/profile.sh 12.0 tests/promise"
    [profile-12.4]="ci/profile.sh 12.4 tests/promise"
    [profile-12.9]="ci/profile.sh 12.9 tests/promise"
    [profile-wddm]="ci/profile.sh wddm tests/promise"
    [profile-13.0]="ci/profile.sh 13.0 tests/promise"
    [compute-capability]="env FTCUDA_SIM_CC=120 ci/test.sh tests/contract"
    [parallel]="ci/test.sh -n 0 --parallel-threads=4 --ignore=tests/layout --ignore=tests/fuzz --ignore=tests/contract"
    [matrix]="ci/matrix.sh"
    [guests]="ci/guests.sh"
    [models]="ci/models.sh"
    [windows]="ci/windows.sh"
    [arm]="ci/aarch64.sh"
    [wheels]="ci/wheels/twice.sh"
    [benchmark]="ci/benchmark.sh --threads 2 --repeats 1 --scale 0.005"
)
mapfile -t names < <(printf '%s\n' "${!steps[@]}" | sort)
case ${1:-} in
'' | -*) printf '%s\n' "usage: ci/proof.sh STEP..., STEP one of:" "${names[@]}"; [ "${1:-}" = --list ]; exit ;;
all) set -- "${names[@]}" ;;
esac
for name in "$@"; do
    [ -n "${steps[$name]:-}" ] || { echo "ci/proof.sh: there is no step '$name'; --list names them" >&2; exit 2; }
done
failed=()
for name in "$@"; do
    echo "---- $name: ${steps[$name]}"
    begin=$SECONDS verdict=passed
    # shellcheck disable=SC2086  # a command and its arguments
    ${steps[$name]} || { verdict=FAILED; failed+=("$name"); }
    echo "==== $name: $verdict in $(((SECONDS - begin) / 60)) min"
done
[ ${#failed[@]} = 0 ] || { echo "proof: FAILED: ${failed[*]}" >&2; exit 1; }
echo "proof: passed: $*"
