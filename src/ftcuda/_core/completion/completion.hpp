// That work is done, for somebody who is told of it.
//
// It is armed behind the work, by what is cheapest: a word that the stream writes, or an event. Then it is the
// reactor's (reactor.hpp), or is asked by who waits. Once it is over its waiter is told, and what armed it is given
// back.
#pragma once

#include "signals.hpp"

#include <chrono>
#include <list>
#include <memory>
#include <utility>

namespace ftcuda::core {

// Who is told. Without a lock, in a thread that never enters the interpreter.
class Waiter {
public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    virtual ~Waiter() = default;

    // Once at most: never at exit.
    virtual void over(Status status) noexcept = 0;
};

class Completion;

// What work is behind: a stream or an event.
class Awaited {
public:
    // Arms one of the same context.
    virtual Status arm(Completion& completion) = 0;

protected:
    Awaited() = default;
    ~Awaited() = default;
};

class Completion {
public:
    using Time = std::chrono::steady_clock::time_point;

    Completion(Context& context, std::unique_ptr<Waiter> waiter) noexcept
        : context_(context), waiter_(std::move(waiter)) {}
    Completion(const Completion&) = delete;
    Completion& operator=(const Completion&) = delete;

    // Once, with the context current, by who holds a lease on what it is armed behind: what `stream` was given so far,
    // or the latest record of `event`. A stream that others may capture writes no word, which would become part of
    // their graph. `stream_id`: as Stream::id().
    Status arm(abi::CUstream stream, std::uint64_t stream_id, bool may_be_captured);
    Status arm(abi::CUevent event);

    // Instead of all else, if it is armed by an event of which nobody may ask, and that a capture may have.
    void forget_event() noexcept { context_.destroy_event(std::exchange(event_, nullptr)); }

    // CUDA_ERROR_NOT_READY while it is not over. Calls the driver where it is armed by an event.
    Status ask() noexcept;
    // Has the driver say whether the context has failed: words are not written then, and ask() would not find out.
    void ask_for_context() const noexcept;
    // The same as ask(), but looks for so long; at once if only the driver can tell.
    Status look_for(std::chrono::microseconds patience) noexcept;
    // When ask() has answered something else: tells the waiter, unless it was sent away.
    void finish(Status status) noexcept;
    void send_waiter_away() noexcept { waiter_.reset(); }

    Context& context() const noexcept { return context_; }
    bool is_by_event() const noexcept { return event_ != nullptr; }
    bool is_of_same_stream(const Completion& other) const noexcept {
        return &context_ == &other.context_ && stream_id_ == other.stream_id_;
    }
    Time armed() const noexcept { return armed_; }

private:
    Status arm_by_word(abi::CUstream stream);

    // Constant once it is armed.
    Context& context_;
    std::unique_ptr<Waiter> waiter_;
    Signal signal_;                  // no word: armed by an event, or over from the beginning
    abi::CUevent event_ = nullptr;   // of the context's; null: none
    abi::CUstream aside_ = nullptr;  // in which the user's event is waited for; null: none
    std::uint64_t stream_id_ = 0;
    Time armed_{};
};

// One, or several, in the order in which they were armed: their places are made before anything can fail.
using Completions = std::list<Completion>;

}  // namespace ftcuda::core
