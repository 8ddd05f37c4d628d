#!/usr/bin/env bash
# ftcuda beside C++, and beside the libraries that the interpreter has: `ci/benchmark.sh [arguments of python -m benchmarks]`.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh "${FTCUDA_PYTHON_KIND:-t}" "${FTCUDA_CUDA:-13}")
export FTCUDA_DRIVER=${FTCUDA_DRIVER:-sim} MPLCONFIGDIR=$PWD/build/matplotlib  # not in the home
exec "$python" -m benchmarks "$@"
