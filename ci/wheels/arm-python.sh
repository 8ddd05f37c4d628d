#!/usr/bin/env bash
# Prints a CPython 3.13 (with the GIL) of 64-bit Arm that runs here, under QEMU: Debian's packages, unpacked in the cache. Debian has no free-threaded
# one.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${FTCUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ftcuda}
folder=$cache/python-3.13-arm64
program=$folder/python
if [ -x "$program" ] && "$program" -c '' 2>/dev/null; then echo "$program"; exit; fi
ci/debian.sh qemu-user
mirror=$(ci/mirror.sh)
rm -rf "$folder"
mkdir -p "$folder"/{lists/partial,archives/partial,packages,root/usr/lib}
echo "deb [arch=arm64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$folder/sources.list"
apt=(-qq -oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oAPT::Sandbox::User=root -oDir::Etc::SourceList="$folder/sources.list" -oDir::Etc::SourceParts=/dev/null
    -oDir::State::Lists="$folder/lists" -oDir::Cache="$folder" -oDir::State::status=/dev/null)
apt-get "${apt[@]}" update >&2
(cd "$folder/packages" && apt-get "${apt[@]}" download python3.13-minimal libpython3.13-minimal libpython3.13-stdlib libc6 libexpat1 zlib1g \
    libssl3t64 libffi8 libbz2-1.0 liblzma5 libgcc-s1 libstdc++6 libuuid1) >&2
ln -s usr/lib "$folder/root/lib"
for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder/root"; done
rm -rf "$folder"/{lists,archives,packages,sources.list,*.bin}
printf '#!/bin/sh\nexec qemu-aarch64 -L %s %s "$@"\n' "$folder/root" "$folder/root/usr/bin/python3.13" >"$program"
chmod +x "$program"
"$program" -c '' || { echo "ci/wheels/arm-python.sh: the interpreter does not run" >&2; exit 1; }
echo "$program"
