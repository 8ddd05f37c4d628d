// Reading numbers out of an image: little-endian, as every host that CUDA runs on.
#pragma once

#include <cstring>
#include <string_view>

namespace ftcuda::core {

// False if `bytes` ends before the number does.
template <class Integer>
bool read(std::string_view bytes, std::size_t offset, Integer& value) noexcept {
    if (offset > bytes.size() || bytes.size() - offset < sizeof value) return false;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return true;
}

}  // namespace ftcuda::core
