#include "graph_pool.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"

namespace ftcuda::core::graph_pool {

using driver::cu;

Status get_attribute(Context& context, int attribute, std::uint64_t& value) noexcept {
    if (const Status status = context.usable(); !status.ok()) return status;
    if (!cu.cuDeviceGetGraphMemAttribute) return Status(Reason::absent, Entry::cuDeviceGetGraphMemAttribute);
    const RelaxedCapture relaxed;
    return context.observe(cu.cuDeviceGetGraphMemAttribute(context.device().cu_device(), attribute, &value));
}

Status reset_attribute(Context& context, int attribute) noexcept {
    if (const Status status = context.usable(); !status.ok()) return status;
    if (!cu.cuDeviceSetGraphMemAttribute) return Status(Reason::absent, Entry::cuDeviceSetGraphMemAttribute);
    const RelaxedCapture relaxed;
    std::uint64_t none = 0;
    return context.observe(cu.cuDeviceSetGraphMemAttribute(context.device().cu_device(), attribute, &none));
}

Status trim(Context& context) noexcept {
    if (const Status status = context.usable(); !status.ok()) return status;
    if (!cu.cuDeviceGraphMemTrim) return Status(Reason::absent, Entry::cuDeviceGraphMemTrim);
    const RelaxedCapture relaxed;
    return context.observe(cu.cuDeviceGraphMemTrim(context.device().cu_device()));
}

}  // namespace ftcuda::core::graph_pool
