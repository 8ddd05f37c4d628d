// What a function or a kernel says of itself: attributes and parameters.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

CUresult parameter_info(const ptx::Entry& entry, std::size_t index, std::size_t* offset, std::size_t* bytes);

// An attribute of a function or a kernel; in `attributes` everything has a value.
CUresult get_attribute(const ptx::Entry& entry, const Attributes& attributes, int attribute, int& value);
CUresult set_attribute(const ptx::Entry& entry, Attributes& attributes, int attribute, int value);

}  // namespace ftcuda::sim
