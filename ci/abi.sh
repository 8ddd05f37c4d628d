#!/usr/bin/env bash
# Compares our declarations of the driver's ABI with the real headers of CUDA 11.8, 12.9 and 13, which come as PyPI wheels.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${FTCUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ftcuda}/headers
python=$(ci/python.sh gil)
for requirement in 'nvidia-cuda-runtime-cu11==11.8.*' 'nvidia-cuda-runtime-cu12==12.9.*' 'nvidia-cuda-runtime>=13,<14'; do
    folder=$cache/$(echo "$requirement" | tr -c 'a-z0-9.\n' _)
    if [ ! -e "$folder/done" ]; then
        rm -rf "$folder"
        "$python" -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --target "$folder" "$requirement"
        touch "$folder/done"
    fi
    header=$(find "$folder" -name cuda.h | head -n 1)
    g++ -std=c++17 -fsyntax-only -Wall -Wextra -isystem "$(dirname "$header")" tests/driver/abi_check.cpp
    echo "abi: agrees with $(grep -m1 -oE 'define CUDA_VERSION [0-9]+' "$header")"
done
