#!/usr/bin/env bash
# Unpacks Debian packages of any release and architecture into a folder, and installs nothing: `ci/wheels/unpack.sh ARCH RELEASE FOLDER
# PACKAGE...`, ARCH as Debian has it. A PACKAGE may be a regular expression.
set -euo pipefail
cd "$(dirname "$0")/../.."

arch=$1 release=$2 folder=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder" "$work"/{lists/partial,archives/partial,packages}
echo "deb [arch=$arch signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(ci/mirror.sh) $release main" >"$work/sources.list"
apt=(-qq -oAPT::Architecture="$arch" -oAPT::Architectures="$arch" -oAPT::Sandbox::User="$(id -un)" -oDir::Etc::SourceList="$work/sources.list"
    -oDir::Etc::SourceParts=/dev/null -oDir::State::Lists="$work/lists" -oDir::Cache="$work" -oDir::State::status=/dev/null)
apt-get "${apt[@]}" update >&2
(cd "$work/packages" && apt-get "${apt[@]}" download "${@:4}") >&2
for package in "$work"/packages/*.deb; do dpkg -x "$package" "$folder"; done
