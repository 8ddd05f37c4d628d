#!/usr/bin/env bash
# Runs the C++ tests of the core and of the simulated driver, no interpreter involved, under ThreadSanitizer, and under
# AddressSanitizer with UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/.venv/meson
if [ ! -x "$tools/bin/meson" ] || [ ! -x "$tools/bin/ninja" ]; then
    "$(ci/python.sh gil)" -m venv "$tools"
    "$tools/bin/pip" -q install --disable-pip-version-check 'meson>=1.11' ninja
fi
PATH=$tools/bin:$PATH
for sanitizer in thread address,undefined; do
    folder=build/sanitize-${sanitizer%%,*}
    options=(-Dextension=false -Dcore_tests=true -Ddebug_locks=true -Dbuildtype=debugoptimized -Db_sanitize="$sanitizer" -Db_lundef=false)
    if [ -d "$folder" ]; then meson setup --reconfigure "$folder" "${options[@]}" >/dev/null; else meson setup "$folder" "${options[@]}" >/dev/null; fi
    ninja -C "$folder" >"$folder/build.log" || { tail -n 40 "$folder/build.log"; exit 1; }
    echo "sanitizer $sanitizer"
    TSAN_OPTIONS=halt_on_error=1:exitcode=66 ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        meson test -C "$folder" --no-rebuild --print-errorlogs
done
