// What a batcher has done, counted apart by many threads, and how long it took.
#pragma once

#include "../sync/threads.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ftcuda::core::serving {

enum class Count : unsigned char {
    requests,
    rows,
    rejected,  // the queue was full
    done,
    failed,
    cancelled,
    expired,
    batches,
    batch_rows,
    padding,  // rows of batches beyond theirs, up to the next size
    left_full,
    left_by_delay,
    left_by_idleness,
    left_by_drain,
    last,
};

// Times by powers of two: `counts[n]` lasted 2^n nanoseconds at least and less than twice that. By one writer at a
// time.
class Histogram {
public:
    static constexpr std::size_t buckets = 48;

    // Less than nothing, because somebody looked at the clock before, is nothing.
    void add(std::chrono::nanoseconds time) noexcept {
        time = std::max(time, std::chrono::nanoseconds(0));
        std::size_t bucket = 0;
        for (auto left = time.count(); left > 1 && bucket + 1 < buckets; left /= 2) ++bucket;
        grow(counts_[bucket], 1);
        grow(sum_, static_cast<std::uint64_t>(time.count()));
    }
    std::uint64_t count(std::size_t bucket) const noexcept { return counts_[bucket].load(std::memory_order_relaxed); }
    std::uint64_t sum() const noexcept { return sum_.load(std::memory_order_relaxed); }

private:
    static void grow(std::atomic<std::uint64_t>& counter, std::uint64_t by) noexcept {
        counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }

    // Relaxed: they guard no data.
    std::array<std::atomic<std::uint64_t>, buckets> counts_{};
    std::atomic<std::uint64_t> sum_{0};
};

class Statistics {
public:
    void add(Count count, std::uint64_t by = 1) noexcept {
        cells_[number_of_this_thread() % cells_.size()].counts[static_cast<std::size_t>(count)].fetch_add(
            by, std::memory_order_relaxed);
    }
    std::uint64_t operator[](Count count) const noexcept {
        std::uint64_t sum = 0;
        for (const Cell& each : cells_)
            sum += each.counts[static_cast<std::size_t>(count)].load(std::memory_order_relaxed);
        return sum;
    }

    // Of requests, from arrival until a batch left with them, and until they were done; of batches, from then to their
    // end. By the dispatcher.
    Histogram waiting, total, device;

private:
    struct alignas(64) Cell {
        std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Count::last)> counts{};  // relaxed: as above
    };

    std::array<Cell, 16> cells_;
};

}  // namespace ftcuda::core::serving
