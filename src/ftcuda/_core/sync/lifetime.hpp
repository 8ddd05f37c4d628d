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

    // Takes one `unit` unless a bit of `refused_by` is set. Returns those bits: 0 means inside.
    // Acquire: sees everything written before the handle was published or an exclusive section ended.
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
    Word look() const noexcept { return word_.load(std::memory_order_acquire); }

private:
    std::atomic<Word> word_{0};
};

// Between fields that different threads write: keeps them on different cache lines wherever the object lies, so that it needs no
// alignment of its own, for which memory takes longer to get.
struct LineBetween {
    char unused[64];
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

// Memory of a core object, as opposed to its driver handle: counted, since uses outlive the Python object.
class Shared {
public:
    void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }

    // Release: this owner's writes happen before the deletion. Acquire, by the last: it sees them. Who finds only its own reference
    // need not change the count, because nobody else has one to take another from.
    void release() noexcept {
        FTCUDA_SCHEDULE_POINT("release");
        release_attached();
    }
    // The same without a schedule point.
    void release_attached() noexcept {
        if (references_.load(std::memory_order_acquire) == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

protected:
    Shared() = default;
    virtual ~Shared() = default;
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

private:
    std::atomic<std::uint32_t> references_{1};  // the maker's
};

// One counted reference.
template <class Object>
class Ref {
public:
    Ref() noexcept = default;
    explicit Ref(Object& object) noexcept : object_(&object) { object.retain(); }
    static Ref adopt(Object* object) noexcept {  // takes over the maker's reference
        Ref ref;
        ref.object_ = object;
        return ref;
    }
    Ref(const Ref& other) noexcept : object_(other.object_) {
        if (object_ != nullptr) object_->retain();
    }
    Ref(Ref&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
    Ref& operator=(Ref other) noexcept {
        Object* const mine = object_;
        object_ = other.object_;
        other.object_ = mine;
        return *this;
    }
    ~Ref() {
        if (object_ != nullptr) object_->release();
    }

    explicit operator bool() const noexcept { return object_ != nullptr; }
    Object* operator->() const noexcept { return object_; }
    Object& operator*() const noexcept { return *object_; }
    Object* get() const noexcept { return object_; }
    Object* detach() noexcept {
        Object* const mine = object_;
        object_ = nullptr;
        return mine;
    }

private:
    Object* object_ = nullptr;
};

}  // namespace ftcuda::core
