#!/usr/bin/env bash
# A bounded run of the hazards in stress/: `ci/stress.sh [arguments of python -m stress]`; or of a program of its own:
# `ci/stress.sh awaits|batching|program_cache [its arguments]`. The long runs are steps of ci/proof.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh "${FTCUDA_PYTHON_KIND:-t}" "${FTCUDA_CUDA:-13}")
export FTCUDA_DRIVER=${FTCUDA_DRIVER:-sim} MPLCONFIGDIR=$PWD/build/matplotlib  # not in the home
case ${1:-} in
awaits | batching | program_cache) exec "$python" -m "stress.$1" "${@:2}" ;;
*) exec "$python" -m stress "$@" ;;
esac
