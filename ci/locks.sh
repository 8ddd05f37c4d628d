#!/usr/bin/env bash
# Checks with clang that every guarded field is touched under its lock, and that the C++ layers compile without a warning, each
# file alone: elsewhere ten are one, and would not miss an include.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s extglob nullglob

command -v clang++ >/dev/null || ci/debian.sh clang
flags=(-std=c++17 -fsyntax-only -Wall -Wextra -Werror)
locks=(-Wthread-safety -Werror=thread-safety)
for source in src/ftcuda/_driver/*.cpp src/ftcuda/_core/*/*.cpp; do
    clang++ "${flags[@]}" "${locks[@]}" "$source"
done
for folder in src/ftcuda/_driver src/ftcuda/_core/*/; do  # once more with checks at run time, a folder at a time
    printf "#include \"$PWD/%s\"\n" "${folder%/}"/*.cpp | clang++ "${flags[@]}" "${locks[@]}" -DFTCUDA_DEBUG_LOCKS -x c++ -
done
for source in src/simdriver/!(*_windows).cpp src/simdriver/*/!(*_windows).cpp; do  # those: ci/windows.sh
    clang++ "${flags[@]}" "$source"
done
echo "locks: clean"
