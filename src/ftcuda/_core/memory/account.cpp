#include "account.hpp"

#include <algorithm>

namespace ftcuda::core {

bool Account::charge(std::size_t bytes) noexcept {
    const Lock lock(mutex_);
    // What is current and what is charged never pass the limit together.
    if (bytes > limit_ - figures_.current_bytes - charged_bytes_) return false;
    charged_bytes_ += bytes;
    return true;
}

void Account::confirm(std::size_t bytes) noexcept {
    const Lock lock(mutex_);
    charged_bytes_ -= bytes;
    figures_.current_bytes += bytes;
    figures_.total_bytes += bytes;
    ++figures_.current_count;
    ++figures_.total_count;
    figures_.peak_bytes = std::max(figures_.peak_bytes, figures_.current_bytes);
    figures_.peak_count = std::max(figures_.peak_count, figures_.current_count);
}

void Account::cancel(std::size_t bytes) noexcept {
    const Lock lock(mutex_);
    charged_bytes_ -= bytes;
}

void Account::credit(std::size_t bytes) noexcept {
    const Lock lock(mutex_);
    figures_.current_bytes -= bytes;
    --figures_.current_count;
}

Account::Figures Account::figures() noexcept {
    const Lock lock(mutex_);
    return figures_;
}

}  // namespace ftcuda::core
