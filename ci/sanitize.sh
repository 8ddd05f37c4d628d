#!/usr/bin/env bash
# Runs the C++ tests of the core and of the simulated driver, no interpreter involved, under ThreadSanitizer, and under
# AddressSanitizer with UndefinedBehaviorSanitizer; then the whole extension under an interpreter with ThreadSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$(ci/meson.sh):$PATH
for sanitizer in thread address,undefined; do
    folder=build/sanitize-${sanitizer%%,*}
    ci/compile.sh "$folder" -Dbuildtype=debugoptimized -Db_sanitize="$sanitizer" -Db_lundef=false
    echo "sanitizer $sanitizer"
    TSAN_OPTIONS=halt_on_error=1:exitcode=66 ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        meson test -C "$folder" --no-rebuild --print-errorlogs
done

interpreter=$(ci/python.sh tsan)
python=$(ci/environment.sh t 13)
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
extension=$(ci/debug.sh thread)
nvrtc=$("$python" -c 'from ftcuda._objects.code.program import find_nvrtc; print(find_nvrtc()[0])')
export PYTHONPATH=$extension:$site:$PWD FTCUDA_DRIVER=sim FTCUDA_NVRTC=$nvrtc
export LD_LIBRARY_PATH=${nvrtc%/*}  # NVRTC finds its second library by its caller's path, which ThreadSanitizer hides
report=$PWD/build/debug-thread/report
rm -f "$report"*
cat "$(dirname "$interpreter")/Tools/tsan/suppressions_free_threading.txt" ci/tsan-suppressions.txt >build/debug-thread/suppressions
# Reports go to files, which decide at the end: a process is not failed by them, so that all of them are seen.
# intercept_tls_get_addr: the runtime takes a thread-local block that begins 16 bytes into a page for one of glibc 2.19, reads its
# size from what stands before it, and dies for want of so much shadow. Its memory comes from malloc, which the runtime knows anyway.
export TSAN_OPTIONS="exitcode=0 halt_on_error=0 intercept_tls_get_addr=0 log_path=$report"
TSAN_OPTIONS+=" suppressions=$PWD/build/debug-thread/suppressions"
echo "ThreadSanitizer on the extension"
"$interpreter" -m pytest -q -s -p no:cacheprovider --timeout=300 --parallel-threads=4 tests/objects tests/interop tests/promise/test_close.py
"$interpreter" -m stress --threads 4 --seeds 8 --in-process --timeout 300
"$interpreter" -m stress --threads 4 --seeds 400 --hazard pairs --timeout 300
if compgen -G "$report*" >/dev/null; then cat "$report"*; exit 1; fi
echo "sanitizers: clean"
