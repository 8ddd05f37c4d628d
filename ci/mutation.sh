#!/usr/bin/env bash
# Builds each mutant of the core and sees that something notices it: `ci/mutation.sh [mutants]`. The table and the survivors
# come at the end. All of them take over half an hour; `--share NUMBER SHARES` is some of them.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh t 13)
PATH=$(dirname "$python"):$PATH
exec "$python" -u -m stress.mutation "$@"
