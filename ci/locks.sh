#!/usr/bin/env bash
# Checks with clang that every guarded field is touched under its lock, and that the C++ rooms compile without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang++ >/dev/null; then
    root=(); [ "$(id -u)" = 0 ] || root=(sudo -n)
    if ! { "${root[@]}" apt-get -qq update && "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends clang; } >&2; then
        echo "ci/locks.sh: clang++ is missing; run: sudo apt-get install clang" >&2
        exit 1
    fi
fi
for source in src/ftcuda/_driver/*.cpp src/ftcuda/_core/*.cpp; do
    clang++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -Wthread-safety -Werror=thread-safety "$source"
    clang++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror -Wthread-safety -Werror=thread-safety -DFTCUDA_DEBUG_LOCKS "$source"
done
for source in src/simdriver/*.cpp src/simdriver/ptx/*.cpp; do
    clang++ -std=c++17 -fsyntax-only -Wall -Wextra -Werror "$source"
done
echo "locks: clean"
