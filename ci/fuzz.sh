#!/usr/bin/env bash
# Fuzzes what takes bytes from outside with libFuzzer, under AddressSanitizer and UBSan: `ci/fuzz.sh [seconds for each]`. New
# inputs go to build/fuzz; those worth keeping belong into tests/fuzz/corpus. (Arguments of launches: tests/fuzz/test_arguments.py.)
# `ci/fuzz.sh --runs N` replays the corpus and then does N runs from a fixed seed: the same work each time.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --runs ]; then
    bounds=(-seed=1 -runs="${2:?usage: ci/fuzz.sh [SECONDS | --runs N]}" -timeout=60)  # a slow machine must not decide
else
    bounds=(-max_total_time="${1:-20}" -timeout=10)
fi
if ! command -v clang++ >/dev/null || ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -x c++ -fsanitize=fuzzer - -o /dev/null 2>/dev/null; then
    ci/debian.sh clang
    ci/debian.sh "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev"
fi

fuzz() {
    local name=$1 folder=build/fuzz/$1 found=build/fuzz/$1/found
    shift
    mkdir -p "$folder"
    case ${bounds[0]} in -seed=*) found=$folder/fresh; rm -rf "$found" ;; esac  # what was found before would be other work
    mkdir -p "$found"
    clang++ -std=c++17 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -frounding-math -ffp-contract=off \
        -Wno-unknown-warning-option -Wno-unsupported-floating-point-opt -pthread "tests/fuzz/${name}_fuzz.cpp" "$@" -o "$folder/fuzz"
    echo "fuzzing $name: ${bounds[*]}"
    "$folder/fuzz" "${bounds[@]}" -max_len=8192 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$folder/" "$found" "tests/fuzz/corpus/$name" 2>&1 | tee "$folder/log" | grep -E 'stat::number_of_executed_units|ERROR|SUMMARY|Test unit' || true
    grep -q 'stat::number_of_executed_units' "$folder/log" && ! grep -q 'SUMMARY' "$folder/log"
}

fuzz image src/ftcuda/_core/code/image*.cpp
fuzz cubin src/simdriver/code/cubin.cpp
fuzz ptx src/simdriver/ptx/*.cpp
echo "fuzz: clean"
