// What the driver keeps of a device's memory for its graphs.
#pragma once

#include "../device/context.hpp"

namespace ftcuda::core::graph_pool {

// `attribute`: a CUgraphMem_attribute.
Status get_attribute(Context& context, int attribute, std::uint64_t& value) noexcept;
// A high watermark begins again at what there is now.
Status reset_attribute(Context& context, int attribute) noexcept;
// What no graph uses goes back to the system.
Status trim(Context& context) noexcept;

}  // namespace ftcuda::core::graph_pool
