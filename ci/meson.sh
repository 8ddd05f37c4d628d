#!/usr/bin/env bash
# Prints a folder with meson and ninja in it, for builds without an interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.venv/meson
if [ ! -x "$tools/bin/meson" ] || [ ! -x "$tools/bin/ninja" ]; then
    "$(ci/python.sh gil)" -m venv "$tools"
    "$tools/bin/pip" -q install --disable-pip-version-check 'meson>=1.11' ninja >&2
fi
echo "$tools/bin"
