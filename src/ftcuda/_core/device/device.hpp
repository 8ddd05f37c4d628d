// A device: what it is and can do, read once, constant afterwards. Devices are never freed.
#pragma once

#include "../sync/reason.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

namespace ftcuda::core {

class Context;

class Device {
public:
    static constexpr int limit = 64;  // devices in one process

    // Attribute numbers the driver may be asked for; larger than any that CUDA 13.5 defines.
    static constexpr int attribute_limit = 192;

    static Status count(int& devices) noexcept;
    static Status get(int ordinal, Device*& device);
    static Device* found(int ordinal) noexcept;  // one that get() gave before

    // The device whose context the calling thread has current, 0 when it has none.
    static Status current(int& ordinal) noexcept;
    Status make_current();

    // The primary context, retained at the first call and kept until the process ends: releasing it while some thread
    // still computes would end that thread's work.
    Status context(Context*& context);

    // The value the driver gave, 0 for an attribute that this driver or device does not know.
    int attribute(int number) const noexcept { return attributes_[static_cast<std::size_t>(number)]; }

    int ordinal() const noexcept { return ordinal_; }
    abi::CUdevice cu_device() const noexcept { return cu_device_; }
    const std::string& name() const noexcept { return name_; }
    const std::string& pci_bus_id() const noexcept { return pci_bus_id_; }
    const abi::CUuuid& uuid() const noexcept { return uuid_; }
    std::size_t total_memory() const noexcept { return total_memory_; }
    int compute_capability() const noexcept;  // 10 * major + minor

    // Whether stream-ordered allocation works: the attribute and the entry points (Windows TCC has neither; drivers
    // before 11.2).
    bool has_memory_pools() const noexcept;
    bool has_host_pools() const noexcept;           // CUDA 13 drivers
    bool has_managed_pools() const noexcept;        // CUDA 13 drivers on devices with concurrent managed access
    static bool has_graphs() noexcept;              // drivers of CUDA 11.4
    static bool has_conditional_graphs() noexcept;  // drivers of CUDA 12.3
    bool has_stream_values() const noexcept;        // CUDA 11.7 drivers: streams write words
    bool has_tensor_maps() const noexcept;          // CUDA 12 drivers on devices of compute capability 9.0 and up

private:
    Device() = default;
    Status read(int ordinal);

    // Constant after construction.
    int ordinal_ = 0;
    abi::CUdevice cu_device_ = 0;
    std::string name_;
    std::string pci_bus_id_;
    abi::CUuuid uuid_{};
    std::size_t total_memory_ = 0;
    std::array<int, attribute_limit> attributes_{};

    // Synchronises itself: published once with release, read with acquire.
    std::atomic<Context*> context_{nullptr};
};

}  // namespace ftcuda::core
