// Fatbins: which of the images inside a device loads.
#pragma once

#include <cstdint>
#include <string>

namespace ftcuda::sim {

bool is_fatbin(const char* image) noexcept;

// The PTX for the newest architecture that is not above `compute_capability`, as a driver chooses where there is no
// cubin for it. Empty, with a line in `log`, where there is none that is not compressed.
std::string ptx_of_fatbin(const char* image, unsigned compute_capability, std::string& log);

}  // namespace ftcuda::sim
