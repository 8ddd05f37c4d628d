#include "completion.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"

#include <utility>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

Status Completion::arm(CUstream stream, std::uint64_t stream_id, bool may_be_captured) {
    stream_id_ = stream_id;
    armed_ = std::chrono::steady_clock::now();
    if (!may_be_captured && Signals::of(context_).are_there()) return arm_by_word(stream);
    return context_.record(stream, event_);
}

Status Completion::arm_by_word(CUstream stream) {
    Signals& signals = Signals::of(context_);
    if (const Status status = signals.acquire(signal_); !status.ok()) return status;
    const Status status = context_.observe(cu.cuStreamWriteValue32_v2(
        stream, reinterpret_cast<std::uintptr_t>(&signal_.word->value), signal_.value, CU_STREAM_WRITE_VALUE_DEFAULT));
    if (!status.ok()) signals.release(std::exchange(signal_, {}));
    return status;
}

// The event may be recorded again before it is reached. So a stream of ours waits for the record that is there. Others,
// who may get its handle at any moment, may record it in a capture, of which that stream is a part then.
Status Completion::arm(CUevent event) {
    const RelaxedCapture relaxed;
    const Status asked = cu.cuEventQuery(event);
    if (!asked.is(CUDA_ERROR_NOT_READY)) return context_.observe(asked);
    Signals& signals = Signals::of(context_);
    if (const Status status = signals.acquire_stream(aside_); !status.ok()) return status;
    Status status = context_.observe(cu.cuStreamWaitEvent(aside_, event, 0));
    if (status.ok()) {
        int captured = CU_STREAM_CAPTURE_STATUS_NONE;
        status = context_.observe(cu.cuStreamIsCapturing(aside_, &captured));
        if (captured != CU_STREAM_CAPTURE_STATUS_NONE) return Reason::capturing;  // the stream is lost to the capture
    }
    if (status.ok()) status = arm(aside_, reinterpret_cast<std::uintptr_t>(this), false);
    if (!status.ok()) signals.release_stream(std::exchange(aside_, nullptr));
    return status;
}

Status Completion::ask() noexcept {
    constexpr Status not_ready = Status::from_driver(CUDA_ERROR_NOT_READY, Entry::cuEventQuery);
    if (signal_.word != nullptr && signal_.is_written()) return {};
    if (const Status usable = context_.usable(); !usable.ok()) return usable;
    if (signal_.word != nullptr) return not_ready;
    if (event_ == nullptr) return {};
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    const Status status = cu.cuEventQuery(event_);
    if (is_of_capture(status)) return Reason::capturing;  // that others began and ended while it was armed
    return status.is(CUDA_ERROR_NOT_READY) ? status : context_.observe(status);
}

void Completion::ask_for_context() const noexcept {
    const ContextScope scope(context_);
    const RelaxedCapture relaxed;
    CUstream stream = nullptr;
    if (!scope.status().ok() || !context_.housekeeping_stream(stream).ok()) return;
    if (const Status status = cu.cuStreamQuery(stream); !status.is(CUDA_ERROR_NOT_READY))
        context_.observe(status).ignore();
}

Status Completion::look_for(std::chrono::microseconds patience) noexcept {
    const Time end = armed_ + patience;
    for (;;) {
        const Status status = ask();
        if (!status.is(CUDA_ERROR_NOT_READY) || is_by_event() || std::chrono::steady_clock::now() >= end) return status;
    }
}

void Completion::finish(Status status) noexcept {
    if (context_.usable().ok()) {
        Signals& signals = Signals::of(context_);
        if (event_ != nullptr) context_.release_event(event_, status);
        // After a failure nothing says that the stream has come there: a word that it may still write is nobody's.
        if (signal_.word != nullptr && status.ok()) signals.release(signal_);
        if (aside_ != nullptr && status.ok()) signals.release_stream(aside_);
        else if (aside_ != nullptr) signals.destroy_stream(aside_);
    }
    if (waiter_) waiter_->over(status);
}

}  // namespace ftcuda::core
