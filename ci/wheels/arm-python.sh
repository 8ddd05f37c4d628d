#!/usr/bin/env bash
# Prints a CPython (with the GIL) of 64-bit Arm that runs here, under QEMU: `ci/wheels/arm-python.sh 3.13|3.14|3.15`. Debian's
# packages, unpacked in the cache; Debian has no free-threaded one.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=${1:-}
case $version in
3.13) suite=trixie ;;
3.14 | 3.15) suite=testing ;;
*) echo "usage: ci/wheels/arm-python.sh 3.13|3.14|3.15" >&2; exit 2 ;;
esac
cache=${FTCUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ftcuda}
folder=$cache/python-$version-arm64
program=$folder/python
if [ -x "$program" ] && "$program" -c '' 2>/dev/null; then echo "$program"; exit; fi
ci/debian.sh qemu-user
rm -rf "$folder"
mkdir -p "$folder/root/usr/lib"
ln -s usr/lib "$folder/root/lib"
ci/wheels/unpack.sh arm64 "$suite" "$folder/root" "python$version-minimal" "libpython$version-minimal" "libpython$version-stdlib" libc6 \
    libexpat1 zlib1g libssl3t64 libffi8 libbz2-1.0 liblzma5 libgcc-s1 libstdc++6 libuuid1 libzstd1
printf '#!/bin/sh\nexec qemu-aarch64 -L %s %s "$@"\n' "$folder/root" "$folder/root/usr/bin/python$version" >"$program"
chmod +x "$program"
"$program" -c '' || { echo "ci/wheels/arm-python.sh: the interpreter does not run" >&2; exit 1; }
echo "$program"
