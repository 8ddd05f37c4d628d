#!/usr/bin/env bash
# The C++ tests of the core and of the simulated driver, no interpreter involved, under AddressSanitizer with
# UndefinedBehaviorSanitizer, and under ThreadSanitizer; the whole extension under an interpreter with ThreadSanitizer:
# `ci/sanitize.sh [address] [thread] [extension]`, all of them by default.
set -euo pipefail
cd "$(dirname "$0")/.."

address() {
    echo "AddressSanitizer and UndefinedBehaviorSanitizer"
    ci/compile.sh build/sanitize-address -Doptimization=1 -Dcpp_args=-g1 -Db_sanitize=address,undefined -Db_lundef=false
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_leaks=0 \
        meson test -C build/sanitize-address --no-rebuild --print-errorlogs
}

thread() {
    echo "ThreadSanitizer"
    ci/compile.sh build/sanitize-thread -Doptimization=1 -Dcpp_args=-g1 -Db_sanitize=thread -Db_lundef=false
    TSAN_OPTIONS=halt_on_error=1:exitcode=66 meson test -C build/sanitize-thread --no-rebuild --print-errorlogs
}

extension() {
    echo "ThreadSanitizer on the extension"
    local extension interpreter python site nvrtc nvjitlink report failed=
    extension=$(ci/debug.sh thread)
    interpreter=$(ci/python.sh tsan)
    python=$(ci/environment.sh t 13)
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    nvrtc=$("$python" -c 'from ftcuda._objects.code.program import find_nvrtc; print(find_nvrtc()[0])')
    nvjitlink=$("$python" -c 'from ftcuda._objects.code.linker import find_nvjitlink; print(find_nvjitlink()[0])')
    export PYTHONPATH=$extension:$site:$PWD FTCUDA_DRIVER=sim FTCUDA_NVRTC=$nvrtc FTCUDA_NVJITLINK=$nvjitlink
    export LD_LIBRARY_PATH=${nvrtc%/*}  # NVRTC finds its second library by its caller's path, which ThreadSanitizer hides
    report=$PWD/build/debug-thread/report
    rm -f "$report"*
    cat "$(dirname "$interpreter")/Tools/tsan/suppressions_free_threading.txt" ci/tsan-suppressions.txt >build/debug-thread/suppressions
    # Reports go to files, which decide at the end: a process is not failed by them, so that all of them are seen.
    # intercept_tls_get_addr: the runtime takes a thread-local block that begins 16 bytes into a page for one of glibc 2.19, reads its
    # size from what stands before it, and dies for want of so much shadow. Its memory comes from malloc, which the runtime knows anyway.
    export TSAN_OPTIONS="exitcode=0 halt_on_error=0 intercept_tls_get_addr=0 log_path=$report"
    TSAN_OPTIONS+=" suppressions=$PWD/build/debug-thread/suppressions"
    # In two processes, since much of what they run is one thread at a time. Each test in two threads: it sees a race of two by the order
    # that is missing between them, whether they meet or not, and more threads find no more. Those of the hazards are four.
    local files=(tests/objects/test_*.py tests/interop/test_*.py tests/promise/test_close.py)
    half() {
        local index mine=()
        for ((index = $1; index < ${#files[@]}; index += 2)); do mine+=("${files[index]}"); done
        "$interpreter" -m pytest -q -s -p no:cacheprovider --timeout=300 --parallel-threads=2 "${mine[@]}"
    }
    stress() { "$interpreter" -m stress --threads 4 --timeout 300 "$@"; }
    (half 0 && stress --seeds 8 --in-process) >build/debug-thread/half 2>&1 &
    half 1 && stress --seeds 400 --hazard pairs || failed=1
    wait $! || failed=1
    cat build/debug-thread/half
    [ -z "$failed" ]
    if compgen -G "$report*" >/dev/null; then cat "$report"*; exit 1; fi
}

PATH=$(ci/meson.sh):$PATH
[ $# -gt 0 ] || set -- address thread extension
for part in "$@"; do
    case $part in
    address | thread | extension) "$part" ;;
    *) echo "usage: ci/sanitize.sh [address] [thread] [extension]" >&2; exit 2 ;;
    esac
done
echo "sanitizers: clean"
