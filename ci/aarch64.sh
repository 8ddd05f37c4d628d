#!/usr/bin/env bash
# Compiles the C++ layers for 64-bit Arm, whose memory orders less than x86's, and runs their tests under QEMU on the simulated
# driver.
set -euo pipefail
cd "$(dirname "$0")/.."

ci/debian.sh g++-aarch64-linux-gnu qemu-user
PATH=$(ci/meson.sh):$PATH
folder=build/aarch64
ci/compile.sh "$folder" --cross-file ci/aarch64.ini -Dwerror=true
meson test -C "$folder" --no-rebuild --print-errorlogs
