// Parameter layouts from cubins: ELF64 files of machine 190 with one `.nv.info.<kernel>` section for each kernel.
#pragma once

#include "image.hpp"

namespace ftcuda::core {

bool is_whole_cubin(std::string_view cubin) noexcept;
bool cubin_parameter_layout(std::string_view cubin, std::string_view name, ParameterLayout& layout);
std::vector<std::string> cubin_kernel_names(std::string_view cubin);

}  // namespace ftcuda::core
