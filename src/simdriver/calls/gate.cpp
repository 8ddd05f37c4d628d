#include "gate.hpp"

#include "../schedule/scheduler.hpp"
#include "../state/profile.hpp"
#include "faults.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace ftcuda::sim {

namespace {

std::atomic<bool> forked{false};
thread_local int destructors = 0;  // that this thread is in

// Calls that touch the calling thread alone, or nothing: no other thread can tell when they were made.
bool is_private(Call call) noexcept {
    switch (call) {
    case Call::cuCtxGetCurrent:
    case Call::cuCtxSetCurrent:
    case Call::cuCtxPushCurrent_v2:
    case Call::cuCtxPopCurrent_v2:
    case Call::cuThreadExchangeStreamCaptureMode:
    case Call::cuGetErrorName:
    case Call::cuGetErrorString: return true;
    default: return false;
    }
}

}  // namespace

void refuse_after_fork() noexcept {
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] {
        forked.store(true, std::memory_order_relaxed);
        scheduler::forget_session();
    });
#endif
}

bool is_forked() noexcept { return forked.load(std::memory_order_relaxed); }

InDestructor::InDestructor() noexcept { ++destructors; }
InDestructor::~InDestructor() { --destructors; }

Passage::~Passage() { leave_call(); }

CUresult enter(Call call) {
    if (!is_private(call) && !scheduler::has_locks()) scheduler::point(describe(call).symbol);
    CUresult result = CUDA_SUCCESS;
    if (apply_faults(call, result)) return result;
    if (is_forked()) return CUDA_ERROR_NOT_INITIALIZED;
    if (destructors != 0) return CUDA_ERROR_NOT_PERMITTED;
    if (describe(call).version > profile()->driver_version) return CUDA_ERROR_NOT_FOUND;
    return driver_state().initialised.load(std::memory_order_acquire) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

}  // namespace ftcuda::sim
