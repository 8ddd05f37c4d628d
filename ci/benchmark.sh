#!/usr/bin/env bash
# Builds the C++ baseline and measures launches beside it: `ci/benchmark.sh [arguments of python -m benchmarks]`.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh "${FTCUDA_PYTHON_KIND:-t}" "${FTCUDA_CUDA:-13}")
mkdir -p build
g++ -O2 -std=c++17 -o build/launch benchmarks/launch.cpp -ldl -lpthread
export FTCUDA_DRIVER=${FTCUDA_DRIVER:-sim}
exec "$python" -m benchmarks build/launch "$@"
