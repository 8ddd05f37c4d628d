#!/usr/bin/env bash
# Compiles the C++ layers without the extension, with their tests: `ci/compile.sh FOLDER MESON-OPTIONS...`.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1
PATH=$(ci/meson.sh):$PATH
options=(-Dunity=on -Dextension=false -Dcore_tests=true -Ddebug_locks=true "${@:2}")
if [ -d "$folder" ]; then meson setup --reconfigure "$folder" "${options[@]}" >/dev/null; else meson setup "$folder" "${options[@]}" >/dev/null; fi
ninja -C "$folder" >"$folder/build.log" || { tail -n 40 "$folder/build.log"; exit 1; }
