#!/usr/bin/env bash
# Makes all that is published, in build/dist: the sdist, a wheel for each interpreter and architecture, and their debug symbols:
# `ci/wheels.sh [KIND...]`, KIND as ci/python.sh has it; those of ci/matrix.toml where none is named. FTCUDA_ARCHS limits the
# architectures. All wheels are built from the sdist. The same commit gives the same bytes. What is left by hand is the upload.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "ci/wheels.sh: $*" >&2; }
ccache=$(ci/wheels/ccache.sh)  # the core and the simulated driver are the same for all interpreters
tools=$(ci/wheels/tools.sh)
ask() { "$tools/python" ci/matrix.py "$@"; }
mapfile -t kinds < <(ask kinds)
[ $# -eq 0 ] || kinds=("$@")
[ -z "$(git status --porcelain -- src ci pyproject.toml meson.build VERSION)" ] || say "uncommitted changes: the sdist has what is committed"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

work=$PWD/build/wheels-work dist=$PWD/build/dist
rm -rf "$dist" "$work"
mkdir -p "$dist" "$work/raw"
export CCACHE_DIR=$work/cache FTCUDA_CYTHON_KEPT=$work/cython  # of this run alone: what is published was compiled for it

# What builds ftcuda, and no more, for an interpreter.
builder() {
    local folder=$PWD/.venv/wheels-$1 wanted
    mapfile -t wanted < <("$tools/python" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")')
    if [ "$(cat "$folder/stamp" 2>/dev/null)" != "${wanted[*]}" ]; then
        rm -rf "$folder"
        "$(ci/python.sh "$1")" -m venv "$folder"
        "$folder/bin/pip" -q install --disable-pip-version-check --only-binary :all: build "${wanted[@]}" >&2
        echo "${wanted[*]}" >"$folder/stamp"
    fi
    echo "$folder/bin"
}

first=$(builder gil)  # always the same: versions of Python compress in different ways
export CYTHON="$first/python $PWD/ci/cython.py"  # and Cython itself is compiled for this one
say "sdist"
PATH=$first:$PATH "$first/python" -m build -q --sdist --no-isolation -o "$dist" . >&2
tar -C "$work" -xf "$dist"/*.tar.gz
source=$(ls -d "$work"/ftcuda-*)

for kind in "${kinds[@]}"; do
    bin=$(builder "$kind")
    for arch in ${FTCUDA_ARCHS:-$(ask architectures)}; do
        say "wheel of $kind for $arch"
        compiler=$(ci/wheels/glibc.sh "$arch")
        options=("-Csetup-args=-Dcpp_args=-g1 -ffile-prefix-map=$source=ftcuda" "-Cbuild-dir=$source/build")
        environment=("CXX=$ccache $compiler")
        if [ "$arch" != "$(uname -m)" ]; then
            "$bin/python" ci/wheels/cross.py "$arch" "$ccache" "$compiler" "$work/$kind-$arch"
            options+=("-Csetup-args=--cross-file=$work/$kind-$arch/cross.ini" "-Csetup-args=-Dpython.build_config=$work/$kind-$arch/build-details.json")
            environment=("_PYTHON_HOST_PLATFORM=linux-$arch")
        fi
        env "${environment[@]}" PATH="$bin:$PATH" "$bin/pip" -q wheel --disable-pip-version-check --no-build-isolation --no-deps \
            -w "$work/raw" "${options[@]}" "$source" >&2
        rm -rf "$source/build"
    done
done

for wheel in "$work"/raw/*.whl; do
    "$tools/python" ci/wheels/finish.py "$wheel" "$work/finished" "$dist"
done
# auditwheel repairs no wheels of other architectures, and there is nothing to repair: the tag is what it allows.
for wheel in "$work"/finished/*.whl; do
    arch=${wheel##*linux_}
    cp "$wheel" "$dist"
    "$tools/python" -m wheel tags --remove --platform-tag "$(ask manylinux)_${arch%.whl}" "$dist/$(basename "$wheel")" >&2
done
"$tools/twine" check --strict "$dist"/*.whl "$dist"/*.tar.gz
"$tools/python" ci/wheels/table.py "$dist"
