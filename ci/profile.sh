#!/usr/bin/env bash
# The tests of what a driver can change, on one simulated driver with the NVRTC that belongs to it:
# `ci/profile.sh PROFILE [pytest arguments]`, PROFILE as ci/matrix.toml has it, or `picked`: by the seed of `.ci/run` one of those
# that it does not name.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${1:?usage: ci/profile.sh PROFILE|picked [pytest arguments]}
shift
if [ "$profile" = picked ]; then
    others=(11.8 12.0 12.4 12.9 wddm)
    profile=${others[$((${FTCUDA_SEED:-0} % ${#others[@]}))]}
fi
cuda=$("$(ci/python.sh t)" ci/matrix.py cuda "$profile")
echo "profile $profile, CUDA $cuda"
export FTCUDA_SIM_PROFILE=$profile FTCUDA_CUDA=$cuda
exec ci/test.sh -q "$@" tests/contract tests/objects tests/interop tests/seeds tests/faults
