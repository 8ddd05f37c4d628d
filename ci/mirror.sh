#!/usr/bin/env bash
# Prints the Debian mirror that the system's apt sources name.
set -euo pipefail

mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1 | tr -d ' ' || true)
if [ -z "$mirror" ]; then
    echo "ci/mirror.sh: the system's apt sources name no Debian mirror to fetch packages from" >&2
    exit 1
fi
echo "$mirror"
