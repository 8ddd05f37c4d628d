#!/usr/bin/env bash
# Prints a g++ that compiles for glibc 2.28, as wheels of manylinux_2_28 must be: `ci/wheels/glibc.sh x86_64|aarch64`.
# It is Debian's own, with other headers and libraries of C: those that the ziglang package makes for any version of glibc.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=28  # 2.28
arch=${1:-}
case $arch in
x86_64) compiler=g++ headers=(generic-glibc any-linux-any x86-linux-any x86-linux-gnu) ;;
aarch64) compiler=aarch64-linux-gnu-g++ headers=(generic-glibc any-linux-any aarch64-linux-any aarch64-linux-gnu) ;;
*) echo "usage: ci/wheels/glibc.sh x86_64|aarch64" >&2; exit 2 ;;
esac
ci/debian.sh "${compiler/#*-g++/g++-aarch64-linux-gnu}"

tools=$(ci/wheels/tools.sh)
zig=$("$tools/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent)')
folder=$PWD/build/glibc/$arch
wanted=$({ "$compiler" -dumpfullversion; "$zig/zig" version; sha256sum ci/wheels/glibc.sh ci/wheels/glibc.hpp; } | sha256sum)
if [ "$(cat "$folder/stamp" 2>/dev/null)" = "$wanted" ]; then echo "$folder/g++"; exit; fi
rm -rf "$folder"
mkdir -p "$folder"/{include,lib,cache}
for each in "${headers[@]}"; do cp -rf "$zig/lib/libc/include/$each/." "$folder/include/"; done
rm "$folder/include/sys/single_threaded.h"  # of glibc 2.32: libstdc++ asks whether there is one

# Linking anything makes the libraries: names and versions, and no code.
echo 'int nothing(void) { return 0; }' >"$folder/nothing.c"
ZIG_GLOBAL_CACHE_DIR=$folder/cache ZIG_LOCAL_CACHE_DIR=$folder/cache \
    "$zig/zig" cc -target "$arch-linux-gnu.2.$version" -shared -fPIC "$folder/nothing.c" -o "$folder/nothing.so" -lm -lpthread -ldl -lrt >&2
find "$folder/cache" \( -name 'lib*.so.[0-9]' -o -name libc_nonshared.a \) -exec cp {} "$folder/lib" \;
for name in m.so.6 dl.so.2 rt.so.1; do ln -s "lib$name" "$folder/lib/lib${name%.*}"; done
# As glibc's own scripts: what programs link is first.
echo 'GROUP ( libc_nonshared.a libpthread.so.0 )' >"$folder/lib/libpthread.so"
echo 'GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( libld.so.2 ) )' >"$folder/lib/libc.so"

# The compiler's and the C++ library's own headers stay, and those of C are replaced.
mapfile -t own < <("$compiler" -E -v -x c++ /dev/null 2>&1 >/dev/null | sed -n '/^#include </,/^End/s/^ //p' | xargs realpath -m |
    grep -E '/c\+\+/|/lib/gcc.*/include$')
{
    echo '#!/bin/sh'
    printf 'exec %s -nostdinc -nostdinc++' "$compiler"
    printf ' -isystem %s' "${own[@]}" "$folder/include"
    printf ' -D__GLIBC_MINOR__=%s -include %s -B%s -L%s -Wl,--allow-shlib-undefined "$@"\n' $version "$PWD/ci/wheels/glibc.hpp" "$folder/lib/" "$folder/lib"
} >"$folder/g++"
chmod +x "$folder/g++"
rm -rf "$folder/cache" "$folder"/nothing.*
echo "$wanted" >"$folder/stamp"
echo "$folder/g++"
