#!/usr/bin/env bash
# Sets everything up and runs the main jobs, multithreaded inference and an HTTP server: on the GPU if there is one, else on the
# simulated driver. Arguments go to `python -m examples.inference`, and `--requests N` to `python -m examples.serving` too.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh "${FTCUDA_PYTHON_KIND:-t}" "${FTCUDA_CUDA:-13}")
export MPLCONFIGDIR=$PWD/build/matplotlib  # not in the home
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

echo "---- 1 of 2: python -m examples.inference"
"$python" -m examples.inference "$@"

echo "---- 2 of 2: python -m examples.serving"
if ! "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('granian') is None)"; then
    echo "SKIPPED: granian, the HTTP server of this part, is not installed for $("$python" -VV)"
    exit
fi
requests=()
while [ $# -gt 0 ]; do
    case $1 in
    --requests) requests=("$1" "${2:-}"); shift ;;
    --requests=*) requests=("$1") ;;
    esac
    shift
done
exec "$python" -m examples.serving "${requests[@]}"
