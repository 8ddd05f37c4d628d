#!/usr/bin/env bash
# Prints a ccache: Debian's, unpacked in the cache. Installed, it would be what meson compiles everything with, and have a folder
# of its own outside of the project's.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=${FTCUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ftcuda}/ccache
program=$folder/ccache
if [ -x "$program" ] && "$program" --version >/dev/null 2>&1; then echo "$program"; exit; fi
rm -rf "$folder"
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
ci/wheels/unpack.sh "$(dpkg --print-architecture)" "$release" "$folder/root" ccache '^libhiredis[0-9.]*$'
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$folder/root/usr/lib/$(uname -m)-linux-gnu" "$folder/root/usr/bin/ccache" >"$program"
chmod +x "$program"
"$program" --version >/dev/null || { echo "ci/wheels/ccache.sh: it does not run" >&2; exit 1; }
echo "$program"
