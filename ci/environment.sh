#!/usr/bin/env bash
# Makes or refreshes a virtual environment with ftcuda in it and prints its python: `ci/environment.sh [KIND] [11|12|13]`,
# KIND as ci/python.sh has it.
# It lies in .venv/<kind>-cu<major>. ftcuda is built again only if its sources changed, once for each KIND, so that a second run
# takes a second.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-t}
cuda=${2:-13}
case $cuda in 11 | 12 | 13) ;; *) echo "usage: ci/environment.sh [t|gil|3.14t|3.14] [11|12|13]" >&2; exit 2 ;; esac
folder=$PWD/.venv/$kind-cu$cuda
python=$folder/bin/python
say() { echo "ci/environment.sh: $*" >&2; }

command -v g++ >/dev/null || ci/debian.sh g++

interpreter=$(ci/python.sh "$kind")
if [ ! -x "$python" ] || ! "$python" -c '' 2>/dev/null; then
    say "making $folder"
    rm -rf "$folder"
    "$interpreter" -m venv "$folder"
fi

install() { "$python" -m pip install -q --disable-pip-version-check "$@" >&2; }
wanted=$(sha256sum pyproject.toml | cut -d' ' -f1)
if [ "$(cat "$folder/requirements.stamp" 2>/dev/null)" != "$wanted" ]; then
    say "installing what ftcuda needs (NVRTC of CUDA $cuda is the large one)"
    mapfile -t requirements < <("$python" - "cu$cuda" <<'PYTHON'
import sys, tomllib

project = tomllib.load(open("pyproject.toml", "rb"))
extras = project["project"]["optional-dependencies"]
for requirement in project["build-system"]["requires"] + project["project"]["dependencies"] + extras["test"] + extras["demo"] + extras[sys.argv[1]]:
    print(requirement)
PYTHON
    )
    # Wheels only: a package without one for this interpreter is to be noticed, not compiled.
    install --only-binary :all: "${requirements[@]}"
    echo "$wanted" >"$folder/requirements.stamp"
fi

sources=$( (find src -type f -print0 | sort -z | xargs -0 sha256sum; sha256sum meson.build meson.options pyproject.toml) | sha256sum | cut -d' ' -f1)
if [ "$(cat "$folder/sources.stamp" 2>/dev/null)" != "$sources" ]; then
    wheels=$PWD/build/wheels/$kind  # one for all CUDA versions
    mkdir -p "$wheels"
    {
        flock 9
        if [ "$(cat "$wheels/sources.stamp" 2>/dev/null)" != "$sources" ]; then
            say "building ftcuda"
            rm -f "$wheels"/*.whl
            PATH=$folder/bin:$PATH "$python" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$wheels" . >&2
            echo "$sources" >"$wheels/sources.stamp"
        fi
        install --no-deps --force-reinstall "$wheels"/*.whl
    } 9>"$wheels/lock"
    echo "$sources" >"$folder/sources.stamp"
fi
echo "$python"
