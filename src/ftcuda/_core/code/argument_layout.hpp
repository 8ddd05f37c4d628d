// How the arguments of a launch are packed: where each stands among the bytes of all.
#pragma once

#include "image.hpp"

#include <cstddef>

namespace ftcuda::core {

struct ArgumentLayout {
    struct Slot {
        std::uint32_t offset = 0;
        std::uint32_t size = 0;
        ParameterKind kind = ParameterKind::unknown;
    };

    ArgumentLayout() noexcept = default;
    // Aligned for whatever type a parameter may have: the driver is told where each argument is.
    explicit ArgumentLayout(const ParameterLayout& parameters) {
        for (const Parameter& each : parameters.parameters) {
            slots.push_back({static_cast<std::uint32_t>(bytes), each.size, each.kind});
            bytes += (each.size + alignment - 1) / alignment * alignment;
        }
    }

    static constexpr std::size_t alignment = 16;

    std::vector<Slot> slots;
    std::size_t bytes = 0;
};

}  // namespace ftcuda::core
