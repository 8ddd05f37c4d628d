#!/usr/bin/env bash
# Builds the wheels of all interpreters and tests each, installed into a clean environment, with each NVRTC and the simulated
# drivers that ci/matrix.toml lists for it: `ci/matrix.sh [pytest arguments]`. Prints the wheels' tags and sizes, and a table.
# FTCUDA_PYTHON_KIND limits it to one interpreter, or to several with spaces between them, as ci/python.sh calls them.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$PWD/build/matrix
mkdir -p "$work/wheels"
gil=$(ci/python.sh gil)
ask() { "$gil" ci/matrix.py "$@"; }
tools=$(ci/wheels/tools.sh)

while IFS=$'\t' read -r version build enable; do
    if [ ! -x "$work/cibuildwheel-$version/bin/python" ]; then
        "$gil" -m venv "$work/cibuildwheel-$version"
        "$work/cibuildwheel-$version/bin/pip" -q install --disable-pip-version-check "cibuildwheel==$version"
    fi
    for system in linux windows; do
        archs=x86_64,aarch64; [ "$system" = linux ] || archs=AMD64
        diff <(ask identifiers "$system" "$version" | sort) \
            <(CIBW_BUILD=$build CIBW_ENABLE=$enable "$work/cibuildwheel-$version/bin/python" -m cibuildwheel --print-build-identifiers \
                --platform "$system" --archs "$archs" | sort) ||
            { echo "ci/matrix.sh: cibuildwheel $version would not build what ci/matrix.toml says for $system" >&2; exit 1; }
    done
done < <(ask cibuildwheel)
echo "matrix: cibuildwheel builds what ci/matrix.toml says"

declare -A wheels
for kind in ${FTCUDA_PYTHON_KIND:-$(ask kinds)}; do
    python=$(ci/environment.sh "$kind" 13)
    rm -rf "$work/wheels/$kind"
    PATH=$(dirname "$python"):$PATH "$python" -m pip -q wheel --disable-pip-version-check --no-build-isolation --no-deps -w "$work/wheels/$kind" .
    wheels[$kind]=$(ls "$work/wheels/$kind"/*.whl)
    echo "matrix: $(basename "${wheels[$kind]}"), $(stat -c %s "${wheels[$kind]}") bytes; $("$tools/auditwheel" show "${wheels[$kind]}" | tr '\n' ' ' | grep -oE 'manylinux_[0-9_a-z]+|linux_x86_64' | head -n 1)"
done

table=() failed=0
while read -r kind cuda profiles; do
    [ -n "${wheels[$kind]:-}" ] || continue
    folder=$work/$kind-cu$cuda
    if [ ! -x "$folder/bin/python" ]; then "$(ci/python.sh "$kind")" -m venv "$folder"; fi
    "$folder/bin/pip" -q install --disable-pip-version-check --only-binary :all: "${wheels[$kind]}[cu$cuda,stress,test]" 'Cython>=3.3'
    "$folder/bin/pip" -q install --disable-pip-version-check --no-deps --force-reinstall "${wheels[$kind]}"
    for profile in $profiles; do
        begin=$SECONDS
        echo "==== $kind, CUDA $cuda, simulated driver $profile"
        FTCUDA_DRIVER=sim FTCUDA_SIM_PROFILE=$profile "$folder/bin/python" -m pytest -q "$@" | tee "$work/log" || failed=1
        table+=("$kind | $cuda | $profile | $(tail -n 1 "$work/log") | $((SECONDS - begin)) s")
    done
done < <(ask rows)
printf '%s\n' "interpreter | CUDA | profile | tests | time" "${table[@]}"
exit $failed
