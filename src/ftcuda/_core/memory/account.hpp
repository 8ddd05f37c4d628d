// What was allocated through a counting or limiting resource: charged before the allocation, confirmed after it, and
// credited when the buffer is freed.
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

    // False, and nothing is charged, if the limit would be passed. A charge counts for the limit at once, and is in the
    // figures once it is confirmed: an allocation that fails was never in use.
    bool charge(std::size_t bytes) noexcept EXCLUDES(mutex_);
    // What becomes of a charge: its allocation succeeded; or failed.
    void confirm(std::size_t bytes) noexcept EXCLUDES(mutex_);
    void cancel(std::size_t bytes) noexcept EXCLUDES(mutex_);
    // What was confirmed is free again.
    void credit(std::size_t bytes) noexcept EXCLUDES(mutex_);

    std::size_t limit() const noexcept { return limit_; }
    Figures figures() noexcept EXCLUDES(mutex_);

private:
    ~Account() override = default;

    const std::size_t limit_;
    Mutex mutex_{Rank::account};
    Figures figures_ GUARDED_BY(mutex_);
    std::size_t charged_bytes_ GUARDED_BY(mutex_) = 0;  // neither confirmed nor cancelled yet
};

}  // namespace ftcuda::core
