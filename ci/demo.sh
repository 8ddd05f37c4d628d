#!/usr/bin/env bash
# Sets everything up and runs the main job, multithreaded inference: on the GPU if there is one, else on the simulated driver.
# Arguments go to `python -m examples.inference`.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh "${FTCUDA_PYTHON_KIND:-t}" "${FTCUDA_CUDA:-13}")
if [ -z "${FTCUDA_DRIVER:-}" ]; then
    if reason=$("$python" -c "
import ftcuda
try:
    print(ftcuda.Device(0).name)
except (ftcuda.DriverNotFoundError, ftcuda.CUDAError) as problem:
    raise SystemExit(str(problem))
" 2>&1); then
        export FTCUDA_DRIVER=cuda
        echo "GPU: $reason"
    else
        export FTCUDA_DRIVER=sim
        echo "No GPU, so the simulated driver is used: $reason"
    fi
fi
exec "$python" -m examples.inference "$@"
