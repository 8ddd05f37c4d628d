#!/usr/bin/env bash
# Everything that needs a GPU, with the driver of this machine: `ci/gpu.sh [tests] [parallel] [stress] [sanitizer] [benchmarks]`,
# all of them by default. FTCUDA_PYTHON is an interpreter with ftcuda (ci/pack.sh); without it, one is set up.
# FTCUDA_STRESS_SECONDS is how long the hazards run, 300 by default.
set -euo pipefail
cd "$(dirname "$0")/.."

export FTCUDA_DRIVER=cuda
python=${FTCUDA_PYTHON:-$(ci/environment.sh t 13)}
[ $# -gt 0 ] || set -- tests parallel stress sanitizer benchmarks
for step in "$@"; do
    echo "==== $step"
    case $step in
    tests) "$python" -m pytest -q --ignore=tests/layout --ignore=tests/fuzz ;;  # which read sources and bytes
    parallel) "$python" -m pytest -q --parallel-threads=4 tests/objects tests/interop tests/promise ;;
    stress) "$python" -m stress --driver cuda --threads 16 --seconds "${FTCUDA_STRESS_SECONDS:-300}" ;;
    sanitizer)
        command -v compute-sanitizer >/dev/null || { echo "ci/gpu.sh: compute-sanitizer is not on PATH" >&2; exit 1; }
        # Asking for the first attribute that a driver does not know is an error on purpose.
        compute-sanitizer --error-exitcode 1 --target-processes all --report-api-errors no "$python" -m pytest -q -m "not faulting" \
            tests/contract tests/interop tests/objects/test_launch.py tests/objects/test_bound_launch.py tests/objects/test_buffer.py \
            tests/objects/test_cache.py
        # Without backtraces: with them `dead_owners` hangs in its first round (three threads wait for a section that nobody is in), and
        # without them 1,750 rounds passed.
        compute-sanitizer --error-exitcode 1 --report-api-errors no --show-backtrace no "$python" -m stress --driver cuda \
            --threads 4 --seeds 5 --in-process
        ;;
    benchmarks)
        "$python" -m benchmarks
        "$python" -m benchmarks.contention
        "$python" -m benchmarks.adapter
        "$python" -m benchmarks.staging
        "$python" -m benchmarks.fragmentation
        "$python" -m benchmarks.waking
        "$python" -m benchmarks.serving --plot
        ;;
    *) echo "ci/gpu.sh: there is no step '$step'" >&2; exit 2 ;;
    esac
done
