#!/usr/bin/env bash
# Tests on a build with the scheduler's points in the core and with checked locks: `ci/points.sh [pytest arguments]`; those of the
# scheduler and of the harness, and what no thread may hold while a call fails or a process forks, by default.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh t 13)
PYTHONPATH=$(ci/debug.sh):$PWD
export PYTHONPATH FTCUDA_DRIVER=sim
[ $# -gt 0 ] || set -- tests/testing tests/faults tests/promise/test_fork.py
exec "$python" -m pytest -q "$@"
