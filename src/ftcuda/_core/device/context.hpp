// A device's primary context and what belongs to it: whether it is poisoned, and idle events. Contexts are never freed.
#pragma once

#include "../sync/mutex.hpp"
#include "device.hpp"

#include <atomic>
#include <vector>

namespace ftcuda::core {

class ContextWait;
class Signals;
class Staging;
class Stream;

// What a question for an event, or a wait for it, comes to if a capture has recorded it: one that goes on, and that is
// spoilt by this, or one that is over (driver 580).
constexpr bool is_of_capture(Status status) noexcept {
    return status.is(abi::CUDA_ERROR_CAPTURED_EVENT) || status.is(abi::CUDA_ERROR_INVALID_VALUE);
}

class Context {
public:
    Context(Device& device, abi::CUcontext cu_context) noexcept : device_(device), cu_context_(cu_context) {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    Device& device() const noexcept { return device_; }
    abi::CUcontext cu_context() const noexcept { return cu_context_; }

    // Success, or why no call can work here any more: forked, or poisoned by an earlier failure.
    Status usable() const noexcept;

    // Passes `status` through; a failure after which the driver refuses everything is remembered.
    Status observe(Status status) noexcept {
        if (!status.ok()) remember(status);
        return status;
    }

    // True until the context is poisoned and while the process runs: what a destructor asks before it calls the driver.
    bool may_destroy() const noexcept;

    // An idle event without timing; give it back when no call of ours needs it. A recorded event may be given back
    // while a stream still waits for it: the wait uses the record as it was when the wait was submitted. Not so an
    // event that a running capture has recorded: the next one to record it would crash the driver. Stream::mark() makes
    // none of these; what was recorded otherwise is given back by its stream (Stream::release_event), or destroyed.
    Status acquire_event(abi::CUevent& event) EXCLUDES(events_mutex_);
    void release_event(abi::CUevent event) EXCLUDES(events_mutex_);
    void destroy_event(abi::CUevent event) noexcept;
    // After a question or a wait, of which `status` came.
    void release_event(abi::CUevent event, Status status) {
        if (is_of_capture(status)) destroy_event(event);
        else release_event(event);
    }
    // One that is recorded behind all that was submitted to `stream`, of the context's own, so far; null on failure.
    // Streams of users mark instead (Stream::mark). With the context current.
    Status record(abi::CUstream stream, abi::CUevent& event);

    // Whether the work behind a recorded event is done; false also where that cannot be known, as of an event that a
    // capture had.
    bool is_reached(abi::CUevent event) noexcept { return ask(event).ok(); }
    // The same: CUDA_ERROR_NOT_READY, or what else came of it, which is said as a failure of nobody's call.
    Status ask(abi::CUevent event) noexcept;

    // A stream of our own, for frees that have no other stream to be ordered in.
    Status housekeeping_stream(abi::CUstream& stream);

    // Captures of our own that are under way (capture_session.hpp). A wait for all of the context would end them.
    void begin_capture() noexcept { captures_.fetch_add(1, std::memory_order_acq_rel); }
    void end_capture() noexcept { captures_.fetch_sub(1, std::memory_order_acq_rel); }
    bool has_captures() const noexcept { return captures_.load(std::memory_order_acquire) != 0; }

    Status memory_info(std::size_t& free, std::size_t& total);

    // Lowest and highest priority of streams; higher priorities are smaller numbers.
    Status priority_range(int& least, int& greatest);

private:
    friend class ContextWait;
    friend class Signals;
    friend class Staging;
    friend class Stream;

    void remember(Status status) noexcept;

    // Constant after construction.
    Device& device_;
    const abi::CUcontext cu_context_;

    // Synchronises itself: the first sticky failure, packed; 0 while there is none. Relaxed: it guards no other data.
    std::atomic<std::uint64_t> poison_{0};
    // Acquire and release: whoever waits for the context after a capture has ended finds it ended.
    std::atomic<unsigned> captures_{0};
    // Published once each with release, read with acquire. The streams, the staging memory, the wait and the signals
    // are published by their own classes.
    std::atomic<Stream*> legacy_stream_{nullptr};
    std::atomic<Stream*> per_thread_stream_{nullptr};
    std::atomic<Staging*> staging_{nullptr};
    std::atomic<abi::CUstream> housekeeping_stream_{nullptr};
    std::atomic<ContextWait*> wait_{nullptr};
    std::atomic<Signals*> signals_{nullptr};

    Mutex events_mutex_{Rank::event_pool};
    std::vector<abi::CUevent> idle_events_ GUARDED_BY(events_mutex_);
};

// Makes a context current for a scope. A thread that had another context current gets it back; a thread that had none
// keeps ours, which saves the next call the switch.
class ContextScope {
public:
    explicit ContextScope(const Context& context) noexcept;
    ~ContextScope();
    ContextScope(const ContextScope&) = delete;
    ContextScope& operator=(const ContextScope&) = delete;

    Status status() const noexcept { return status_; }

private:
    abi::CUcontext restore_ = nullptr;
    Status status_;
};

}  // namespace ftcuda::core
