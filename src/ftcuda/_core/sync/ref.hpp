// Counted references to the memory of core objects, as opposed to their driver handles, which have leases
// (lifetime.hpp).
#pragma once

#include "../../_driver/schedule.hpp"

#include <atomic>
#include <cstdint>

namespace ftcuda::core {

// Memory of a core object, as opposed to its driver handle: counted, since uses outlive the Python object.
class Shared {
public:
    void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }

    // Release: this owner's writes happen before the deletion. Acquire, by the last: it sees them. Who finds only its
    // own reference need not change the count, because nobody else has one to take another from.
    void release() noexcept {
        FTCUDA_SCHEDULE_POINT("release");
        release_attached();
    }
    // The same without a schedule point.
    void release_attached() noexcept {
        if (references_.load(std::memory_order_acquire) == 1 ||
            references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete this;
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
