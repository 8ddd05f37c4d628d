// Numbers of threads, to spread them over lines of memory that they would all write otherwise.
#pragma once

#include <atomic>
#include <cstddef>

namespace ftcuda::core {

inline std::size_t number_of_this_thread() noexcept {
    static std::atomic<std::size_t> next{0};  // relaxed: it guards no data
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed);
    return mine;
}

}  // namespace ftcuda::core
