// The memory that a graph allocates: an address of its own, at which a launch allocates and, where the capture says so,
// frees. What is not freed in the graph stays allocated from its first launch on, and is freed with its buffer.
#pragma once

#include "../sync/ref.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

namespace ftcuda::core {

class CapturedMemory final : public Shared {
public:
    // What has not been freed in the capture so far; each is kept by the graph. By who has the session's lock.
    // `buffer`: null for memory of nodes that nobody captured.
    void add(abi::CUdeviceptr pointer, Shared* buffer) { open_.push_back({pointer, buffer}); }
    void remove(abi::CUdeviceptr pointer) noexcept {
        const auto is_it = [&](const Open& each) { return each.pointer == pointer; };
        open_.erase(std::remove_if(open_.begin(), open_.end(), is_it), open_.end());
    }
    Shared* find(abi::CUdeviceptr pointer) const noexcept {
        for (const Open& each : open_) {
            if (each.pointer == pointer) return each.buffer;
        }
        return nullptr;
    }

    // Once the capture is over. Whether the driver frees all of it by the end of each launch.
    bool is_freed_by_launches() const noexcept { return open_.empty(); }

    void note_launch() noexcept { launched_.store(true, std::memory_order_release); }
    // Then there is memory at what launches do not free, for good.
    bool was_launched() const noexcept { return launched_.load(std::memory_order_acquire); }

private:
    ~CapturedMemory() override = default;

    struct Open {
        abi::CUdeviceptr pointer;
        Shared* buffer;
    };
    // Guarded by the session's lock, and constant once the capture is over.
    std::vector<Open> open_;
    // An executable was launched. Release and acquire: who finds it set comes after the launch.
    std::atomic<bool> launched_{false};
};

}  // namespace ftcuda::core
