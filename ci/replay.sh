#!/usr/bin/env bash
# Races under the seeded scheduler, on a build with its points in the core and with checked locks: `ci/replay.sh [SEEDS [FIRST]]`.
# First each seed that ever failed (stress/seeds.toml), then SEEDS of each hazard and schedule, from FIRST on (1, or what `.ci/run`
# says). Runs the same seeds in two processes too: two traces of one seed that differ are a failure of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${1:-300} first=${2:-${FTCUDA_SEED:-1}}
python=$(ci/environment.sh t 13)
PYTHONPATH=$(ci/debug.sh):$PWD
export PYTHONPATH FTCUDA_DRIVER=sim PYTHONHASHSEED=0
"$python" -X faulthandler -m stress.seeds
for schedule in random pct:3 pct:10; do
    "$python" -X faulthandler -m stress --sched "$schedule" --threads 4 --seeds "$seeds" --seed "$first" --timeout 120
done
"$python" -m stress.replay --sched pct:10 --seeds 50
"$python" -m stress.replay --sched random --seeds 50
PYTHON_GIL=1 "$python" -m stress.replay --sched pct:10 --seeds 50
