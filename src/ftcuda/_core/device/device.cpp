#include "device.hpp"

#include "../../_driver/loader.hpp"
#include "../../_driver/table.hpp"
#include "context.hpp"
#include "../sync/fork.hpp"

#include <memory>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

// Published once each with release, read with acquire: whoever sees the pointer sees the device.
std::array<std::atomic<Device*>, Device::limit> devices{};

}  // namespace

Status Device::count(int& devices) noexcept {
    if (is_forked()) return Reason::forked;
    return cu.cuDeviceGetCount(&devices);
}

Status Device::get(int ordinal, Device*& device) {
    if (is_forked()) return Reason::forked;
    if (ordinal < 0 || ordinal >= limit) return Status(Reason::driver, Entry::cuDeviceGet, CUDA_ERROR_INVALID_DEVICE);
    std::atomic<Device*>& published = devices[static_cast<std::size_t>(ordinal)];
    device = published.load(std::memory_order_acquire);
    if (device != nullptr) return {};

    // Several threads may read the same device at once; the first to publish wins and the others throw theirs away.
    std::unique_ptr<Device> mine(new Device);
    if (const Status status = mine->read(ordinal); !status.ok()) return status;
    if (published.compare_exchange_strong(device, mine.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
        device = mine.release();
    }
    return {};
}

Device* Device::found(int ordinal) noexcept {
    return devices[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire);
}

Status Device::current(int& ordinal) noexcept {
    if (is_forked()) return Reason::forked;
    CUcontext cu_context = nullptr;
    if (const Status status = cu.cuCtxGetCurrent(&cu_context); !status.ok()) return status;
    ordinal = 0;
    return cu_context == nullptr ? Status() : cu.cuCtxGetDevice(&ordinal);
}

Status Device::make_current() {
    Context* context = nullptr;
    if (const Status status = this->context(context); !status.ok()) return status;
    if (const Status status = context->usable(); !status.ok()) return status;
    return context->observe(cu.cuCtxSetCurrent(context->cu_context()));
}

Status Device::read(int ordinal) {
    ordinal_ = ordinal;
    if (const Status status = cu.cuDeviceGet(&cu_device_, ordinal); !status.ok()) return status;
    char text[256] = {};
    if (const Status status = cu.cuDeviceGetName(text, sizeof text - 1, cu_device_); !status.ok()) return status;
    name_ = text;
    char bus[32] = {};
    if (const Status status = cu.cuDeviceGetPCIBusId(bus, sizeof bus - 1, cu_device_); !status.ok()) return status;
    pci_bus_id_ = bus;
    const Status uuid =
        cu.cuDeviceGetUuid_v2 ? cu.cuDeviceGetUuid_v2(&uuid_, cu_device_) : cu.cuDeviceGetUuid(&uuid_, cu_device_);
    if (!uuid.ok()) return uuid;
    if (const Status status = cu.cuDeviceTotalMem_v2(&total_memory_, cu_device_); !status.ok()) return status;
    for (int number = 1; number < attribute_limit; ++number) {
        // Numbers have no gaps: the first one refused is the first that this driver does not know. The rest stay 0.
        const Status status =
            cu.cuDeviceGetAttribute(&attributes_[static_cast<std::size_t>(number)], number, cu_device_);
        if (status.is(CUDA_ERROR_INVALID_VALUE)) break;
        if (!status.ok()) return status;
    }
    return {};
}

Status Device::context(Context*& context) {
    if (is_forked()) return Reason::forked;
    context = context_.load(std::memory_order_acquire);
    if (context != nullptr) return {};

    // First use from many threads: every one of them may retain, since the driver counts; all but one release again. No
    // lock, because retaining may block for long.
    CUcontext cu_context = nullptr;
    if (const Status status = cu.cuDevicePrimaryCtxRetain(&cu_context, cu_device_); !status.ok()) return status;
    std::unique_ptr<Context> mine(new Context(*this, cu_context));
    if (context_.compare_exchange_strong(context, mine.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
        context = mine.release();
        return {};
    }
    return cu.cuDevicePrimaryCtxRelease_v2(cu_device_);
}

int Device::compute_capability() const noexcept {
    return 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
           attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

bool Device::has_memory_pools() const noexcept {
    return attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0 && cu.cuMemAllocFromPoolAsync &&
           cu.cuMemFreeAsync;
}

bool Device::has_host_pools() const noexcept {
    return has_memory_pools() && attribute(CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED) != 0;
}

bool Device::has_managed_pools() const noexcept {
    // Managed pools came with CUDA 13.0 and have no attribute of their own.
    return has_memory_pools() && driver::loaded_driver().version >= 13000 &&
           attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) != 0;
}

bool Device::has_graphs() noexcept { return cu.cuUserObjectCreate && cu.cuGraphInstantiateWithFlags; }

bool Device::has_conditional_graphs() noexcept { return has_graphs() && cu.cuStreamBeginCaptureToGraph; }

bool Device::has_stream_values() const noexcept {
    return cu.cuStreamWriteValue32_v2 && attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0;
}

bool Device::has_tensor_maps() const noexcept {
    return static_cast<bool>(driver::cu.cuTensorMapEncodeTiled) && compute_capability() >= 90;
}

}  // namespace ftcuda::core
