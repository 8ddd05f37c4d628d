#!/usr/bin/env bash
# Makes all that is published twice, sees that the bytes are the same, and tries the wheels of 3.13 as a user does.
set -euo pipefail
cd "$(dirname "$0")/../.."

sums() { (cd build/dist && sha256sum ./*); }
ci/wheels.sh
first=$(sums)
ci/wheels.sh
diff <(echo "$first") <(sums) || { echo "ci/wheels/twice.sh: two builds of one commit differ" >&2; exit 1; }
for kind in t gil; do ci/wheels/try.sh "$kind" build/dist; done
