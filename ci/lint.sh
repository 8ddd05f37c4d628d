#!/usr/bin/env bash
# Lints Python, Cython, C++, shell scripts and spelling.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.venv/lint
if [ "$(cat "$tools/stamp" 2>/dev/null)" != "$(cat ci/lint-requirements.txt)" ]; then
    rm -rf "$tools"
    "$(ci/python.sh gil)" -m venv "$tools"
    "$tools/bin/pip" -q install --disable-pip-version-check --only-binary :all: -r ci/lint-requirements.txt
    cp ci/lint-requirements.txt "$tools/stamp"
fi
PATH=$tools/bin:$PATH
ruff check .
# Declarations of C++ classes stand without blank lines between them, as in the headers (E301).
cython-lint src --ignore E301
cpp=$(git ls-files '*.cpp' '*.hpp' '*.h')
# shellcheck disable=SC2086  # one word for each file
clang-format --dry-run -Werror $cpp
# clang-format leaves comments alone.
# shellcheck disable=SC2086
if awk 'length > 120 {print FILENAME ":" FNR ": " length " columns"; found = 1} END {exit !found}' $cpp; then exit 1; fi
shellcheck ci/*.sh ci/wheels/*.sh .ci/run
codespell src tests examples ci docs ./*.md --skip '*.gz,*.npz,*.ptx,weights.npz'
echo "lint: clean"
