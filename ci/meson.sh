#!/usr/bin/env bash
# Prints a folder with meson and ninja in it, for builds without an interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.venv/meson
mkdir -p .venv
exec 8>"$tools.lock"
flock 8  # another script may be making it
if [ ! -f "$tools/stamp" ]; then
    rm -rf "$tools"
    "$(ci/python.sh gil)" -m venv "$tools"
    "$tools/bin/pip" -q install --disable-pip-version-check 'meson>=1.11' ninja >&2
    touch "$tools/stamp"
fi
echo "$tools/bin"
