#!/usr/bin/env bash
# Races under the seeded scheduler, on a build with its points in the core and with checked locks: `ci/replay.sh [seeds]`. Runs
# the same seeds in two processes too: two traces of one seed that differ are a failure of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${1:-300}
python=$(ci/environment.sh t 13)
PYTHONPATH=$(ci/debug.sh):$PWD
export PYTHONPATH FTCUDA_DRIVER=sim PYTHONHASHSEED=0
"$python" -m pytest -q tests/testing tests/faults tests/promise/test_fork.py
for schedule in random pct:3 pct:10; do
    "$python" -X faulthandler -m stress --sched "$schedule" --threads 4 --seeds "$seeds"
done
"$python" -m stress.replay --sched pct:10 --seeds 50
"$python" -m stress.replay --sched random --seeds 50
PYTHON_GIL=1 "$python" -m stress.replay --sched pct:10 --seeds 50
