#!/usr/bin/env bash
# Compiles the C++ layers for Windows with MinGW-w64, and runs their tests under Wine on the simulated driver.
set -euo pipefail
cd "$(dirname "$0")/.."

ci/debian.sh g++-mingw-w64-x86-64-posix wine wine64
PATH=$(ci/meson.sh):$PATH
folder=build/windows
ci/compile.sh "$folder" --cross-file ci/mingw.ini -Dwerror=true
# Where the programs find the compiler's libraries; a home of Wine's own, so that the user's stays as it is.
runtime=$(x86_64-w64-mingw32-g++-posix -print-file-name=libstdc++-6.dll)
export WINEPATH="Z:${runtime%/*};Z:/usr/x86_64-w64-mingw32/lib"
export WINEPREFIX=$PWD/build/wine WINEDEBUG=-all
wineboot --init 2>/dev/null
run() { meson test -C "$folder" --no-rebuild --print-errorlogs; }
# Wine's server ends with the last program, and may reset the connection of the next one, which says so.
run || { grep -q "wine client error" "$folder/meson-logs/testlog.txt" && run; }
