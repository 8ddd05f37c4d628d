#!/usr/bin/env bash
# Counts the instructions of calls and compares them with benchmarks/instructions.toml: `ci/instructions.sh [--update]`.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v valgrind >/dev/null || ci/debian.sh valgrind
python=$(ci/environment.sh t 13)
exec "$python" -m benchmarks.instructions "$@"
