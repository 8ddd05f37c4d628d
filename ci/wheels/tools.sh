#!/usr/bin/env bash
# Prints a folder with what makes and checks wheels: python with ziglang, auditwheel and twine.
set -euo pipefail
cd "$(dirname "$0")/../.."

gil=$(ci/python.sh gil)
tools=$PWD/.venv/wheels
wanted=("ziglang==0.17.1" 'auditwheel>=6.8' 'twine>=6' wheel)
if [ "$(cat "$tools/stamp" 2>/dev/null)" != "${wanted[*]}" ]; then
    rm -rf "$tools"
    "$gil" -m venv "$tools"
    "$tools/bin/pip" -q install --disable-pip-version-check "${wanted[@]}" >&2
    echo "${wanted[*]}" >"$tools/stamp"
fi
echo "$tools/bin"
