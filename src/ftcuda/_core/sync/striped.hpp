// A value that many threads load whole and few replace: the arguments of a bound launch, the coding of a tensor map.
//
// Threads that load it write nothing in common: each loads from a stripe, which has a copy of its own. replace()
// empties all stripes, and only then lets anybody see the new value, since a thread that finds its stripe empty waits
// for the replacement: once one thread had the new value, none has the old. Who took a value before keeps it for as
// long as it holds the reference.
#pragma once

#include "mutex.hpp"
#include "ref.hpp"
#include "threads.hpp"

#include <array>

namespace ftcuda::core {

// `Value` is Shared, constant once others see it, and its copy constructor makes one with counts of its own.
template <class Value>
class Striped {
public:
    explicit Striped(Ref<Value> first) : current_(std::move(first)) {}

    // The value of this moment.
    Ref<Value> load() EXCLUDES(mutex_) {
        Stripe& stripe = stripes_[number_of_this_thread() % stripes_.size()];
        {
            const Lock of_stripe(stripe.mutex);
            if (stripe.value) return stripe.value;
        }
        const Lock lock(mutex_);
        const Lock of_stripe(stripe.mutex);
        if (!stripe.value) stripe.value = Ref<Value>::adopt(new Value(*current_));
        return stripe.value;
    }

    // The same, for who is not in a hurry: no stripe gets a copy.
    Ref<Value> current() EXCLUDES(mutex_) {
        const Lock lock(mutex_);
        return current_;
    }

    // What is loaded from now on is what `change` returns, a Ref<Value> made of the value it is given. Replacements
    // come one after the other; one whose `change` throws replaces nothing.
    template <class Change>
    void replace(Change&& change) EXCLUDES(mutex_) {
        std::array<Ref<Value>, stripe_count + 1> old;  // let go of after the locks
        const Lock lock(mutex_);
        Ref<Value> changed = change(*current_);
        for (std::size_t number = 0; number < stripes_.size(); ++number) {
            Stripe& stripe = stripes_[number];
            const Lock of_stripe(stripe.mutex);
            old[number] = std::move(stripe.value);
        }
        old.back() = std::move(current_);
        current_ = std::move(changed);
    }

private:
    static constexpr std::size_t stripe_count = 16;

    struct alignas(64) Stripe {
        Mutex mutex{Rank::stripe};
        Ref<Value> value GUARDED_BY(mutex);  // null until a thread needs it
    };

    std::array<Stripe, stripe_count> stripes_;  // synchronise themselves

    Mutex mutex_{Rank::striped};
    Ref<Value> current_ GUARDED_BY(mutex_);
};

}  // namespace ftcuda::core
