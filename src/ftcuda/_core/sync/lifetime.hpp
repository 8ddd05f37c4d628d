// Leases: who is inside a closable handle, and who destroys it. Nobody ever blocks.
//
// One 64-bit word per handle:
//
//   bit 0        closing: set once by close(), never cleared
//   bit 1        exclusive: submissions by other threads must wait (streams only, see stream.hpp)
//   bits 2..31   inner leases: submissions to a stream
//   bits 32..63  leases
//
//   state                    enter()     leave()             close()
//   open                     counts      uncounts            sets closing; the caller destroys if nobody is inside
//   closing, n > 1 inside    refused     uncounts            does nothing
//   closing, 1 inside        refused     uncounts, destroys  does nothing
//   closing, nobody inside   refused     cannot happen       does nothing
//
// enter() is a compare-exchange loop on purpose. With a plain fetch_add a late enter() lifts a dead word from "closing,
// nobody" to "closing, one" and its own leave() destroys the handle a second time.
#pragma once

#include "../../_driver/schedule.hpp"

#include <atomic>
#include <cstdint>

namespace ftcuda::core {

class Lifetime {
public:
    using Word = std::uint64_t;
    static constexpr Word closing = 1;
    static constexpr Word exclusive = 2;
    static constexpr Word inner = 4;
    static constexpr Word inner_leases = 0xffff'fffc;
    static constexpr Word lease = Word{1} << 32;

    // Takes one `unit` unless a bit of `refused_by` is set. Returns those bits: 0 means inside. Acquire: sees
    // everything written before the handle was published or an exclusive section ended.
    Word enter(Word unit = lease, Word refused_by = closing) noexcept {
        FTCUDA_SCHEDULE_POINT("enter");
        Word seen = word_.load(std::memory_order_relaxed);
        do {
            if ((seen & refused_by) != 0) return seen & refused_by;
        } while (!word_.compare_exchange_weak(seen, seen + unit, std::memory_order_acquire, std::memory_order_relaxed));
        return 0;
    }

    // One more lease, for who is inside: refused by nothing. Relaxed: the caller's own lease ordered what was before.
    void enter_again() noexcept {
        FTCUDA_SCHEDULE_POINT("enter again");
        word_.fetch_add(lease, std::memory_order_relaxed);
    }

    // Gives one `unit` back; the word as it was before. Release: what was done inside happens before the destruction.
    // Acquire: the destroyer sees what the others did inside.
    Word leave(Word unit = lease) noexcept {
        FTCUDA_SCHEDULE_POINT("leave");
        return word_.fetch_sub(unit, std::memory_order_acq_rel);
    }

    // True if the one who gave back `unit` from `before` was the last inside a closing handle, and so must destroy it.
    static constexpr bool last(Word before, Word unit = lease) noexcept {
        return (before & ~exclusive) == (unit | closing);
    }

    // True if the caller must destroy the handle: it was open and nobody is inside. Same orders as leave().
    bool close() noexcept {
        FTCUDA_SCHEDULE_POINT("close");
        return (word_.fetch_or(closing, std::memory_order_acq_rel) & ~exclusive) == 0;
    }

    bool is_closing() const noexcept { return (word_.load(std::memory_order_acquire) & closing) != 0; }

    // For the exclusive section. Acquire-release: the section sees, and is seen by, the submissions around it.
    Word begin_exclusive() noexcept {
        FTCUDA_SCHEDULE_POINT("begin exclusive");
        return word_.fetch_or(exclusive, std::memory_order_acq_rel);
    }
    void end_exclusive() noexcept {
        FTCUDA_SCHEDULE_POINT("end exclusive");
        word_.fetch_and(~exclusive, std::memory_order_acq_rel);
    }
    Word load() const noexcept { return word_.load(std::memory_order_acquire); }

private:
    std::atomic<Word> word_{0};
};

// A lease on an object that has `bool enter()` and `void leave()`, for one scope. False when the object is closed.
template <class Object>
class Lease {
public:
    explicit Lease(Object& object) noexcept : object_(object.enter() ? &object : nullptr) {}
    ~Lease() {
        if (object_ != nullptr) object_->leave();
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    explicit operator bool() const noexcept { return object_ != nullptr; }

    // The lease outlives the scope: somebody else gives it back.
    void detach() noexcept { object_ = nullptr; }

private:
    Object* object_;
};

}  // namespace ftcuda::core
