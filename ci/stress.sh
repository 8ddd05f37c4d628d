#!/usr/bin/env bash
# A bounded run of the hazards in stress/: `ci/stress.sh [arguments of python -m stress]`.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh "${FTCUDA_PYTHON_KIND:-t}" "${FTCUDA_CUDA:-13}")
exec "$python" -m stress "$@"
