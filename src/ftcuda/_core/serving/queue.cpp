#include "queue.hpp"

#include "../../_driver/schedule.hpp"

#include <thread>

namespace ftcuda::core::serving {

Queue::Queue(std::vector<Slab*> slabs) : open_(slabs.back()), first_(slabs.back()), free_(std::move(slabs)) {
    free_.pop_back();
    first_->open();
    replenish();
}

void Queue::wait_for_next(const Slab& slab) const noexcept {
    while (open_.load(std::memory_order_acquire) == &slab && !slab.is_open()) {
        FTCUDA_SCHEDULE_POINT("wait for a slab");
        std::this_thread::yield();
    }
}

bool Queue::replenish() noexcept {
    if (at_hand_.load(std::memory_order_acquire) != nullptr) return true;
    if (free_.empty()) return false;
    at_hand_.store(free_.back(), std::memory_order_release);
    free_.pop_back();
    return true;
}

std::size_t Queue::take(Slab& slab) {
    bool is_full = false;
    const std::size_t rows = slab.close(is_full);
    if (!is_full) {
        // Nobody else takes the one at hand: only whose ticket reaches an end does.
        Slab* next = nullptr;
        while ((next = at_hand_.exchange(nullptr, std::memory_order_acq_rel)) == nullptr) replenish();
        follow(slab, *next);
    }
    while (slab.next() == nullptr || !slab.is_written(rows)) {
        replenish();  // for who opens the next one
        FTCUDA_SCHEDULE_POINT("wait for who writes");
        std::this_thread::yield();
    }
    first_ = slab.next();
    replenish();
    return rows;
}

}  // namespace ftcuda::core::serving
