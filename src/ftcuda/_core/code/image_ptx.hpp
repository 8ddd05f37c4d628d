// Parameter layouts from PTX text: the `.param` list of each `.entry`.
#pragma once

#include "image.hpp"

namespace ftcuda::core {

bool is_ptx(std::string_view text) noexcept;
bool ptx_parameter_layout(std::string_view text, std::string_view name, ParameterLayout& layout);
std::vector<std::string> ptx_kernel_names(std::string_view text);

}  // namespace ftcuda::core
