#!/usr/bin/env bash
# Finds or makes a CPython and prints its path: `ci/python.sh t` the free-threaded 3.13 (default), `ci/python.sh gil` the other 3.13,
# `ci/python.sh tsan` a free-threaded one with ThreadSanitizer, which is only ever built, `ci/python.sh 3.14t` and `3.14`
# those of 3.14, likewise of 3.15.
# Looked for on PATH, in the project's cache, with `uv python install`; else built from Debian's source package, which takes three
# minutes once. Touches nothing outside the cache, except for Debian packages that the build needs.
set -euo pipefail

kind=${1:-t}
version=3.13
case $kind in 3.1[45]t) version=${kind%t} kind=t ;; 3.1[45]) version=$kind kind=gil ;; esac
case $kind in
t) name=python${version}t; free_threaded=1; configure=(--disable-gil) ;;
gil) name=python$version; free_threaded=0; configure=() ;;
tsan) name=python; free_threaded=1; configure=(--disable-gil --with-thread-sanitizer) ;;
*) echo "usage: ci/python.sh [t|gil|tsan|3.14t|3.14|3.15t|3.15]" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
cache=${FTCUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ftcuda}
prefix=$cache/python-$version-$kind
program=$prefix/bin/$name
if [ "$kind" = tsan ]; then program=$prefix/python; fi  # stays in its build tree: installing compiles for minutes

say() { echo "ci/python.sh: $*" >&2; }

# Whether $1 is a CPython of the wanted version and kind with the modules that we need.
fits() {
    "$1" -c "
import sys, sysconfig, ctypes, lzma, sqlite3, ssl, venv, zlib
assert '%d.%d' % sys.version_info[:2] == '$version' and sys.implementation.name == 'cpython'
assert bool(sysconfig.get_config_var('Py_GIL_DISABLED')) == bool($free_threaded)
" 2>/dev/null
}

found() { echo "$1"; exit 0; }

for candidate in "$(command -v "$name" || true)" "$program"; do
    if [ "$kind" = tsan ] && [ "$candidate" != "$program" ]; then continue; fi  # on PATH it would be any python
    if [ -n "$candidate" ] && [ -x "$candidate" ] && fits "$candidate"; then found "$candidate"; fi
done

mkdir -p "$cache"
exec 9>"$cache/python-$version-$kind.lock"
flock 9  # another script may be making the same interpreter
if [ -x "$program" ] && fits "$program"; then found "$program"; fi

uv=
if [ "$kind" != tsan ]; then uv=$(command -v uv || true); fi
if [ -z "$uv" ] && [ "$kind" != tsan ] && python3 -m venv "$cache/uv" >/dev/null 2>&1 && "$cache/uv/bin/pip" -q install uv >/dev/null 2>&1; then
    uv=$cache/uv/bin/uv
fi
export UV_CACHE_DIR=$cache/uv-cache
if [ -n "$uv" ]; then
    wanted=$version; [ "$free_threaded" = 1 ] && wanted=${version}t
    say "trying uv python install $wanted"
    if UV_PYTHON_INSTALL_DIR=$cache/uv-python timeout 300 "$uv" python install --no-bin "$wanted" >"$cache/uv-$version-$kind.log" 2>&1; then
        candidate=$(UV_PYTHON_INSTALL_DIR=$cache/uv-python "$uv" python find "$wanted" 2>/dev/null || true)
        if [ -n "$candidate" ] && fits "$candidate"; then found "$candidate"; fi
    fi
    say "uv found none (log: $cache/uv-$version-$kind.log)"
fi

# From here on: Debian's source package.
packages=(gcc make xz-utils libssl-dev zlib1g-dev libffi-dev libbz2-dev liblzma-dev libsqlite3-dev libreadline-dev)
if ! command -v apt-get >/dev/null; then
    say "there is no CPython $version of kind '$kind', and no apt-get to fetch its source with; put $name on PATH"
    exit 1
fi
"$here/debian.sh" "${packages[@]}"

work=$cache/build-$version-$kind
rm -rf "$work"
mkdir -p "$work/lists/partial" "$work/archives/partial"
cd "$work"
# The mirror and the key are the system's own.
mirror=$("$here/mirror.sh")
key=/usr/share/keyrings/debian-archive-keyring.gpg
apt=(-qq -oDir::Etc::SourceList="$work/sources.list" -oDir::Etc::SourceParts=/dev/null -oDir::State::Lists="$work/lists" -oDir::Cache="$work")
quietly() { "$@" >>fetch.log 2>&1; }
source_of() {
    say "fetching CPython's source from Debian $1"
    echo "deb-src [signed-by=$key] $mirror $1 main" >sources.list
    quietly apt-get "${apt[@]}" update && quietly apt-get "${apt[@]}" source --download-only "python$version"
}
# The pool may have dropped the release that testing's index names, and keep older ones: the newest of them that has a Debian
# developer's signature. A release candidate has the ABI of the release.
older_source() {
    local pool=$mirror/pool/main/p/python$version newest number release digest
    "$here/debian.sh" debian-keyring
    echo "deb-src [signed-by=$key] $mirror testing main" >sources.list
    quietly apt-get "${apt[@]}" update
    newest=$(apt-cache "${apt[@]}" showsrc "python$version" | sed -n 's/^Version: [0-9]*\.[0-9]*\.\([0-9]*\).*/\1/p' | sort -n | tail -n 1)
    for number in $(seq $((newest - 1)) -1 0) '0~rc3' '0~rc2' '0~rc1'; do
        release=python${version}_$version.$number
        say "fetching CPython $version.$number from Debian's pool"
        quietly /usr/lib/apt/apt-helper download-file "$pool/$release-1.dsc" "$release.dsc" || continue
        quietly gpgv --keyring /usr/share/keyrings/debian-keyring.gpg --output signed.dsc "$release.dsc" || continue
        digest=$(sed -n "/^Checksums-Sha256/,/^Files/s/ \\([0-9a-f]*\\) [0-9]* $release.orig.tar.xz/\\1/p" signed.dsc)
        if [ -n "$digest" ] && quietly /usr/lib/apt/apt-helper download-file "$pool/$release.orig.tar.xz" "$release.orig.tar.xz" "SHA256:$digest"; then
            return 0
        fi
    done
    return 1
}
if ! source_of testing && ! source_of trixie; then
    rm -f ./*.orig.tar.*  # which may be whole, beside a file that is gone
    older_source || { say "Debian's source package cannot be fetched (log: $work/fetch.log)"; exit 1; }
fi

tar xf "python$version"_*.orig.tar.*
cd "Python-$version"*/
say "building $(basename "$PWD") ($kind) on $(nproc) cores; log: $work/build.log"
staged=$work/staged
build() {
    ./configure -q --prefix="$prefix" --with-ensurepip=install --without-static-libpython "${configure[@]}" &&
        make -s -j"$(nproc)" && if [ "$kind" != tsan ]; then make -s DESTDIR="$staged" install; fi
} >"$work/build.log" 2>&1
build & pid=$!
while kill -0 $pid 2>/dev/null; do
    sleep 15
    if kill -0 $pid 2>/dev/null; then say "building for $SECONDS s"; fi
done
wait $pid || { say "the build failed; the end of its log:"; tail -n 20 "$work/build.log" >&2; exit 1; }
if [ "$kind" = tsan ]; then
    find . \( -name '*.o' -o -name '*.a' \) -delete
    rm -rf "$prefix" Lib/test
    mv "$PWD" "$prefix"
    cd "$cache"
    rm -rf "$work"
    fits "$program" || { say "the interpreter with ThreadSanitizer does not run"; exit 1; }
    found "$program"
fi
find "$staged" -name test -path "*/lib/python$version*/test" -prune -exec rm -rf {} +
find "$staged" -type f \( -name '*.so' -o -path "*/bin/python$version*" \) -exec strip --strip-debug {} + 2>/dev/null || true
rm -rf "$prefix"
mv "$staged$prefix" "$prefix"
cd "$cache"
rm -rf "$work"
fits "$program" || { say "the interpreter that was built lacks modules; are the -dev packages of libssl, zlib, libffi, liblzma and libsqlite3 there?"; exit 1; }
found "$program"
