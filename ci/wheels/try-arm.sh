#!/usr/bin/env bash
# Runs a wheel for 64-bit Arm under QEMU, on the simulated driver: `ci/wheels/try-arm.sh WHEEL`, of CPython 3.13 with the GIL. An import, and a kernel.
set -euo pipefail
cd "$(dirname "$0")/../.."

wheel=$(realpath "${1:?usage: ci/wheels/try-arm.sh WHEEL}") checkout=$PWD
python=$(ci/wheels/arm-python.sh)
tools=$(ci/wheels/tools.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$tools/pip" -q install --disable-pip-version-check --target "$work/site" --only-binary :all: --platform manylinux_2_28_aarch64 --python-version 3.13 \
    --implementation cp --abi cp313 --abi none "$wheel" >&2
cd "$work"
PYTHONPATH=$work/site FTCUDA_DRIVER=sim "$python" "$checkout/ci/wheels/on_arm.py"
