#!/usr/bin/env bash
# Installs a wheel as a user does, in an environment of its own, and uses it there, far from the checkout, on the simulated driver:
# `ci/wheels/try.sh KIND FOLDER`, KIND as ci/python.sh has it, FOLDER with the wheels. README's program; a race of a user's own
# that the plugin of pytest finds, and finds again by its seed; a kernel's test; a hazard.
set -euo pipefail
cd "$(dirname "$0")/../.."

kind=${1:?usage: ci/wheels/try.sh KIND FOLDER} wheels=$(realpath "${2:?usage: ci/wheels/try.sh KIND FOLDER}") checkout=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$(ci/python.sh "$kind")" -m venv "$work/environment"
"$work/environment/bin/pip" -q install --disable-pip-version-check --only-binary :all: --find-links "$wheels" \
    "ftcuda[cu13,stress]==$(cat VERSION)" pytest >&2
cp -r ci/wheels/user_project "$work/project"
# shellcheck disable=SC2016  # Markdown's marks, and no command
program_in() { sed -n '/^```python$/,/^```$/{/^```/!p}' "$1"; }
program_in README.md >"$work/project/readme.py"
program_in docs/stress.md >"$work/project/hazard.py"
cd "$work/project"
export FTCUDA_DRIVER=sim PATH=$work/environment/bin:$PATH

python - "$checkout" <<'PYTHON'
import sys, sysconfig
import ftcuda
assert not any(path.startswith(sys.argv[1]) for path in (ftcuda.__file__, *sys.path)), "the checkout is in use"
assert sys._is_gil_enabled() != bool(sysconfig.get_config_var("Py_GIL_DISABLED")), "an extension module switched the GIL on"
namespace = {}
exec(open("readme.py").read(), namespace)
assert namespace["x"].tolist() == [number / 2 for number in range(1000)]
print(f"ftcuda {ftcuda.__version__} on CPython {sys.version.split()[0]}{'t' if not sys._is_gil_enabled() else ''}: README's program is right")
PYTHON

if pytest -q -p no:cacheprovider test_counter.py >found.txt 2>&1; then
    cat found.txt; echo "ci/wheels/try.sh: the planted race was not found" >&2; exit 1
fi
again=$(sed -n 's/^E *\(pytest .*--race-seed [0-9]*\)$/\1/p' found.txt)
trace=$(grep -oE 'trace 0x[0-9a-f]+' found.txt)
if $again -q -p no:cacheprovider >again.txt 2>&1 || ! grep -q "$trace" again.txt; then
    cat found.txt again.txt; echo "ci/wheels/try.sh: '$again' does not find the same race again" >&2; exit 1
fi
echo "the planted race: found, and again by '$again', $trace"
pytest -q -p no:cacheprovider test_kernel.py
python -m ftcuda.stress hazard.py --seconds 5 --threads 4
