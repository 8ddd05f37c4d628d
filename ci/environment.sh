#!/usr/bin/env bash
# Makes or refreshes a virtual environment with ftcuda in it and prints its python: `ci/environment.sh [KIND] [11|12|13] [editable]`,
# KIND as ci/python.sh has it.
# It lies in .venv/<kind>-cu<major>. ftcuda is built again only if its sources changed, once for each KIND, so that a second run
# takes a second. "editable" makes .venv/<kind>-cu<major>-editable, where ftcuda is the working tree: its import builds what
# changed, in seconds, with fewer optimisations. With FTCUDA_WHEELS, a folder that ci/wheels.sh made, nothing is built: the wheel
# comes from there.
set -euo pipefail
cd "$(dirname "$0")/.."

kind=${1:-t}
cuda=${2:-13}
editable=${3:-}
case $cuda-$editable in
11- | 12- | 13- | 11-editable | 12-editable | 13-editable) ;;
*) echo "usage: ci/environment.sh [t|gil|3.14t|3.14|3.15t|3.15] [11|12|13] [editable]" >&2; exit 2 ;;
esac
folder=$PWD/.venv/$kind-cu$cuda${editable:+-$editable}
python=$folder/bin/python
say() { echo "ci/environment.sh: $*" >&2; }

command -v g++ >/dev/null || ci/debian.sh g++

interpreter=$(ci/python.sh "$kind")
mkdir -p .venv
exec 8>"$folder.lock"
flock 8  # another script may be making the same environment
if [ ! -x "$python" ] || ! "$python" -c 'import pip' 2>/dev/null; then  # it may have been cut while it was made
    say "making $folder"
    rm -rf "$folder"
    "$interpreter" -m venv "$folder"
fi

install() { "$python" -m pip install -q --disable-pip-version-check "$@" >&2; }
wanted=$(cat pyproject.toml VERSION | sha256sum | cut -d' ' -f1)
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

if [ -n "$editable" ]; then
    export PATH=$folder/bin:$PATH CYTHON=$folder/bin/cython  # by its path, for imports with another PATH
    if [ "$(cat "$folder/editable.stamp" 2>/dev/null)" != "$wanted" ]; then
        say "building ftcuda"
        install --no-build-isolation --no-deps --editable . -Cbuild-dir="build/editable/$kind" \
            -Csetup-args=-Dbuildtype=debug -Csetup-args=-Doptimization=1
        echo "$wanted" >"$folder/editable.stamp"
    fi
    "$python" -c 'import ftcuda' || { say "ftcuda does not build: MESONPY_EDITABLE_VERBOSE=1 shows why"; exit 1; }
    echo "$python"
    exit
fi

wheels=$PWD/build/wheels/$kind  # one for all CUDA versions
mkdir -p "$wheels"
build() {
    if [ "$(cat "$wheels/sources.stamp" 2>/dev/null)" = "$sources" ]; then return; fi
    say "building ftcuda"
    rm -f "$wheels/sources.stamp" "$wheels"/*.whl
    PATH=$folder/bin:$PATH "$python" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$wheels" . >&2
    echo "$sources" >"$wheels/sources.stamp"
}
if [ -n "${FTCUDA_WHEELS:-}" ]; then
    sources=$(cat "$FTCUDA_WHEELS"/*.whl | sha256sum)
else
    sources=$( (find src -type f -print0 | sort -z | xargs -0 sha256sum; sha256sum VERSION LICENSE README.md meson.build meson.options pyproject.toml ci/cython.py) | sha256sum | cut -d' ' -f1)
fi
{
    flock 9  # also before the question: a second script would install again while the first one's python imports
    if [ "$(cat "$folder/sources.stamp" 2>/dev/null)" != "$sources" ]; then
        [ -n "${FTCUDA_WHEELS:-}" ] || build
        rm -f "$folder/sources.stamp"
        install --no-deps --force-reinstall --no-index --find-links "${FTCUDA_WHEELS:-$wheels}" ftcuda
        echo "$sources" >"$folder/sources.stamp"
    fi
} 9>"$wheels/lock"
echo "$python"
