#!/usr/bin/env bash
# Installs Debian packages that are missing: `ci/debian.sh PACKAGE...`. Where it may not, it says what to install.
set -euo pipefail

missing=()
for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
cache=${FTCUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ftcuda}
mkdir -p "$cache"
exec 8>"$cache/debian.lock"
flock 8  # another script may be installing, and apt-get does not wait for itself
echo "ci/debian.sh: installing ${missing[*]}" >&2
root=(); [ "$(id -u)" = 0 ] || root=(sudo -n)
if ! { "${root[@]}" apt-get -qq update && "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}"; } >&2; then
    echo "ci/debian.sh: cannot install Debian packages; run: sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
