// A lease that is kept as objects are, for as long as anybody has a reference.
#pragma once

#include "ref.hpp"

namespace ftcuda::core {

template <class Object>
class KeptLease : public Shared {
public:
    explicit KeptLease(Object& object) noexcept : object_(object) {}

    // Once, or take_over(). False when the object is closed.
    bool enter() noexcept { return entered_ = object_->enter(); }
    // A lease that the caller has.
    void take_over() noexcept { entered_ = true; }

    Object& object() const noexcept { return *object_; }

protected:
    ~KeptLease() override {
        if (entered_) object_->leave();
    }

private:
    const Ref<Object> object_;
    bool entered_ = false;
};

}  // namespace ftcuda::core
