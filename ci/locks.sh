#!/usr/bin/env bash
# Checks with clang that every guarded field is touched under its lock, and that the C++ layers compile without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v clang++ >/dev/null || ci/debian.sh clang
for source in src/ftcuda/_driver/*.cpp src/ftcuda/_core/*/*.cpp; do
    clang++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -Wthread-safety -Werror=thread-safety "$source"
    clang++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -Wthread-safety -Werror=thread-safety -DFTCUDA_DEBUG_LOCKS "$source"
done
for source in src/simdriver/*.cpp src/simdriver/*/*.cpp; do
    [[ $source != *_windows.cpp ]] || continue  # ci/windows.sh
    clang++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror "$source"
done
echo "locks: clean"
