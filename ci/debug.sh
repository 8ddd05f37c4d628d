#!/usr/bin/env bash
# Builds ftcuda with checked locks and points for the seeded scheduler, and prints the folder to put on PYTHONPATH:
# `ci/debug.sh [thread]`, with "thread" under ThreadSanitizer instead, and with the tests in C++. It lies in build/debug or
# build/debug-thread. stress/mutation builds with the same options in a tree of its own: a ccache serves both.
set -euo pipefail
cd "$(dirname "$0")/.."

sanitizer=${1:-}
python=$(ci/environment.sh t 13)
PATH=$(dirname "$python"):$PATH
folder=$PWD/build/debug${sanitizer:+-$sanitizer}
options=(-Dunity=on -Doptimization=1 -Ddebug_locks=true --prefix="$folder/install" -Dpython.install_env=prefix)
if [ -n "$sanitizer" ]; then options+=(-Dcpp_args=-g1 -Dcore_tests=true -Db_sanitize="$sanitizer" -Db_lundef=false); else options+=(-Dschedule_points=true); fi
mkdir -p "$folder"
if [ ! -f "$folder/meson/build.ninja" ]; then meson setup "$folder/meson" "${options[@]}" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; exit 1; }; fi
rm -rf "$folder/install"  # also what the sources have no more
ninja -C "$folder/meson" install >"$folder/log" 2>&1 || { tail -n 40 "$folder/log" >&2; exit 1; }
echo "$folder"/install/lib*/python3*/site-packages
