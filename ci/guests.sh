#!/usr/bin/env bash
# Runs programs that know nothing of ftcuda on the simulated driver, with cuda.core 1.2.2 in an environment of its own: `ci/guests.sh`.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh "${FTCUDA_PYTHON_KIND:-t}" 13)
guests=$PWD/.venv/guests
wanted="cuda-core==1.2.2 cuda-bindings==13.5.* nvidia-cuda-nvrtc==13.5.* numpy"
if [ "$(cat "$guests/stamp" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$guests"
    "$(ci/python.sh gil)" -m venv "$guests"
    # shellcheck disable=SC2086  # one word for each package
    "$guests/bin/pip" -q install --disable-pip-version-check --only-binary :all: $wanted
    echo "$wanted" >"$guests/stamp"
fi
export FTCUDA_DRIVER=sim FTCUDA_GUEST_PYTHON=$guests/bin/python
exec "$python" -m pytest -q tests/testing/test_guests.py "$@"
