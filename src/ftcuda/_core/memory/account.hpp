// What was allocated through a counting or limiting resource: charged before the allocation, credited when
// the buffer is freed.
#pragma once

#include "../sync/mutex.hpp"
#include "../sync/ref.hpp"

#include <cstddef>

namespace ftcuda::core {

class Account final : public Shared {
public:
    struct Figures {
        std::size_t current_bytes = 0, current_count = 0;
        std::size_t peak_bytes = 0, peak_count = 0;
        std::size_t total_bytes = 0, total_count = 0;
    };

    explicit Account(std::size_t limit) noexcept : limit_(limit) {}  // in bytes

    // False, and nothing is charged, if the limit would be passed.
    bool charge(std::size_t bytes) noexcept EXCLUDES(mutex_);
    void credit(std::size_t bytes) noexcept EXCLUDES(mutex_);
    // As if the latest charge of so many bytes had not been: its allocation failed.
    void cancel(std::size_t bytes) noexcept EXCLUDES(mutex_);

    std::size_t limit() const noexcept { return limit_; }
    Figures figures() noexcept EXCLUDES(mutex_);

private:
    ~Account() override = default;

    const std::size_t limit_;
    Mutex mutex_{Rank::account};
    Figures figures_ GUARDED_BY(mutex_);
};

}  // namespace ftcuda::core
