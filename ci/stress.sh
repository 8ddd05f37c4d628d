#!/usr/bin/env bash
# A bounded run of the hazards in stress/: `ci/stress.sh [arguments of python -m stress]`. The long proof, about two hours:
# `ci/stress.sh --long`, which also replays thousands of interleavings and soaks for an hour.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh "${FTCUDA_PYTHON_KIND:-t}" "${FTCUDA_CUDA:-13}")
if [ "${1:-}" != --long ]; then exec "$python" -m stress "$@"; fi
"$python" -m stress --driver sim --seconds 300 --threads 8
ci/replay.sh 2000
"$python" -m stress --driver sim --soak --seconds 3600
