#!/usr/bin/env bash
# What to run before a commit, under six minutes on two cores: the lints, the locks, and the tests on the working tree, of which
# only what changed is built: `ci/check.sh [pytest arguments]`. `.ci/run` is what a merge wants.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh t 13 editable)
mkdir -p build
(ci/lint.sh && ci/locks.sh) >build/check.log 2>&1 & lints=$!
export FTCUDA_DRIVER=sim
tests="done"
"$python" -m pytest -q -n auto --dist worksteal "$@" || tests=failed
wait $lints || { cat build/check.log; echo "ci/check.sh: the lints failed" >&2; exit 1; }
tail -n 1 build/check.log
[ $tests = "done" ]
