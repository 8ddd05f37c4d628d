#include "section.hpp"

namespace ftcuda::core {

Section::~Section() {
    // Other levels of the section, begun through other objects, are ended through those.
    for (unsigned level = levels_.load(std::memory_order_relaxed); level != 0; --level) {
        stream_->drop_exclusive(number_.load(std::memory_order_relaxed));
    }
}

Status Section::begin(std::uint64_t task) {
    std::uint64_t number = 0;
    if (const Status status = stream_->begin_exclusive(task, number); !status.ok()) return status;
    number_.store(number, std::memory_order_relaxed);
    levels_.fetch_add(1, std::memory_order_relaxed);
    return {};
}

bool Section::end() noexcept {
    unsigned levels = levels_.load(std::memory_order_relaxed);
    do {
        if (levels == 0) return false;
    } while (!levels_.compare_exchange_weak(levels, levels - 1, std::memory_order_relaxed));
    return stream_->end_exclusive(number_.load(std::memory_order_relaxed));
}

}  // namespace ftcuda::core
