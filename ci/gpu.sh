#!/usr/bin/env bash
# Everything that needs a GPU: the tests, a bounded stress run, compute-sanitizer on the launches and the benchmarks, with the
# driver of this machine: `ci/gpu.sh [seconds of stress]`.
set -euo pipefail
cd "$(dirname "$0")/.."

export FTCUDA_DRIVER=cuda
ci/test.sh -q
ci/test.sh -q --parallel-threads=4 tests/objects tests/interop tests/promise
python=$(ci/environment.sh t 13)
"$python" -m stress --driver cuda --threads 16 --seconds "${1:-300}"
if command -v compute-sanitizer >/dev/null; then
    compute-sanitizer --error-exitcode 1 --target-processes all "$python" -m pytest -q tests/objects/test_launch.py tests/objects/test_bound_launch.py \
        tests/objects/test_cache.py tests/interop
else
    echo "ci/gpu.sh: compute-sanitizer is not on PATH, and was not run" >&2
fi
ci/benchmark.sh
"$python" -m benchmarks.fragmentation
"$python" -m benchmarks.contention
