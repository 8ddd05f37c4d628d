#!/usr/bin/env bash
# Runs a wheel for 64-bit Arm under QEMU, on the simulated driver: `ci/wheels/try-arm.sh 3.13|3.14|3.15 FOLDER`, with the GIL.
# An import, and a kernel that four threads launch.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=${1:?usage: ci/wheels/try-arm.sh 3.13|3.14|3.15 FOLDER} wheels=$(realpath "${2:?usage: ci/wheels/try-arm.sh 3.13|3.14|3.15 FOLDER}") checkout=$PWD
python=$(ci/wheels/arm-python.sh "$version")
tools=$(ci/wheels/tools.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
numpy=numpy; [ "$version" != 3.13 ] || numpy='numpy<2.5'
# Without dependencies: pip would read their conditions for the interpreter that it runs on.
"$tools/pip" -q install --disable-pip-version-check --no-deps --target "$work/site" --only-binary :all: --platform manylinux_2_28_aarch64 \
    --platform manylinux_2_27_aarch64 --python-version "$version" --implementation cp --abi "cp${version/./}" --abi none --find-links "$wheels" \
    "ftcuda==$(cat VERSION)" "$numpy" cuda-pathfinder >&2
cd "$work"
PYTHONPATH=$work/site FTCUDA_DRIVER=sim "$python" "$checkout/ci/wheels/on_arm.py"
