#!/usr/bin/env bash
# Sets everything up and runs the tests: `ci/test.sh [pytest arguments]`. On the simulated driver unless FTCUDA_DRIVER says
# otherwise; in as many processes as there are cores unless an argument says otherwise (-n 0: in this one).
# FTCUDA_PYTHON_KIND (as ci/python.sh has it) and FTCUDA_CUDA (11, 12 or 13) choose the interpreter and NVRTC.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(ci/environment.sh "${FTCUDA_PYTHON_KIND:-t}" "${FTCUDA_CUDA:-13}")
export FTCUDA_DRIVER=${FTCUDA_DRIVER:-sim} MPLCONFIGDIR=$PWD/build/matplotlib  # not in the home
"$python" -c "
import sys, sysconfig, ftcuda
free_threaded = bool(sysconfig.get_config_var('Py_GIL_DISABLED'))
print(f'ftcuda {ftcuda.__version__} on CPython {sys.version.split()[0]}, GIL', 'enabled' if sys._is_gil_enabled() else 'disabled')
if free_threaded and sys._is_gil_enabled():
    sys.exit('importing ftcuda enabled the GIL')
"
processes=(-n auto --dist worksteal)
for argument in "$@"; do
    case $argument in -n* | --numprocesses* | --pdb) processes=() ;; esac
done
exec "$python" -m pytest "${processes[@]}" "$@"
