// Handles of objects.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ftcuda::sim {

// Opaque values that lead to objects. Values are used again like the driver's, last freed first, so that code which
// keeps a stale one is bitten; a value that leads nowhere is a violation.
template <class Object>
class Handles {
public:
    // `tag`: below 64, one for each kind of object, of which there are half a billion values.
    explicit Handles(std::uint64_t tag) noexcept : base_(0x5e00'0000'0000 | (tag << 35)) {}

    std::uint64_t add(std::shared_ptr<Object> object) {
        std::uint64_t value;
        if (free_.empty()) {
            value = base_ + 0x40 * ++issued_;
        } else {
            value = free_.back();
            free_.pop_back();
        }
        live_.emplace(value, std::move(object));
        return value;
    }

    std::shared_ptr<Object> find(const void* handle) const {
        const auto found = live_.find(reinterpret_cast<std::uintptr_t>(handle));
        return found == live_.end() ? nullptr : found->second;
    }

    std::shared_ptr<Object> remove(const void* handle) {
        const auto found = live_.find(reinterpret_cast<std::uintptr_t>(handle));
        if (found == live_.end()) return nullptr;
        std::shared_ptr<Object> object = std::move(found->second);
        free_.push_back(found->first);
        live_.erase(found);
        return object;
    }

    std::size_t size() const noexcept { return live_.size(); }

private:
    const std::uint64_t base_;
    std::uint64_t issued_ = 0;
    std::vector<std::uint64_t> free_;
    std::unordered_map<std::uint64_t, std::shared_ptr<Object>> live_;
};

}  // namespace ftcuda::sim
