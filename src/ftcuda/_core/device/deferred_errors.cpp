#include "deferred_errors.hpp"

#include "../sync/fork.hpp"
#include "../sync/mutex.hpp"

#include <array>
#include <atomic>

namespace ftcuda::core::deferred_errors {

namespace {

constexpr std::size_t capacity = 64;

class Errors {
public:
    void add(const DeferredError& error) noexcept {
        const Lock lock(mutex_);
        if (count_ == capacity) {
            ++dropped_;
            return;
        }
        kept_[(first_ + count_) % capacity] = error;
        ++count_;
        waiting_.store(count_, std::memory_order_relaxed);
    }

    bool pop(DeferredError& error) noexcept {
        const Lock lock(mutex_);
        if (count_ == 0) return false;
        error = kept_[first_];
        first_ = (first_ + 1) % capacity;
        --count_;
        waiting_.store(count_, std::memory_order_relaxed);
        return true;
    }

    std::size_t pop_dropped() noexcept {
        const Lock lock(mutex_);
        const std::size_t dropped = dropped_;
        dropped_ = 0;
        return dropped;
    }

    bool any() const noexcept { return waiting_.load(std::memory_order_relaxed) != 0; }

private:
    // Synchronises itself: a hint of count_, read without the lock.
    std::atomic<std::size_t> waiting_{0};

    // Guarded by mutex_.
    Mutex mutex_{Rank::deferred_errors};
    std::array<DeferredError, capacity> kept_ GUARDED_BY(mutex_){};
    std::size_t first_ GUARDED_BY(mutex_) = 0;
    std::size_t count_ GUARDED_BY(mutex_) = 0;
    std::size_t dropped_ GUARDED_BY(mutex_) = 0;
};

Errors& errors = *new Errors;  // never destroyed: destructors add to it while the process exits

}  // namespace

void add(Status status, const char* verb, const char* object) noexcept {
    if (!status.ok() && !is_forked()) errors.add({status, verb, object});
}

bool any() noexcept { return errors.any() && !is_forked(); }
bool pop(DeferredError& error) noexcept { return errors.pop(error); }
std::size_t pop_dropped() noexcept { return errors.pop_dropped(); }

}  // namespace ftcuda::core::deferred_errors
