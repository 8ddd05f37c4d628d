// What a launch of a graph has in place of arguments that were captured.
#pragma once

#include "../launch/launch.hpp"
#include "../memory/operands.hpp"

namespace ftcuda::core {

// Of one name.
struct Replacement {
    struct Place {
        std::size_t launch;  // among those with parameters, in the order in which they were captured
        std::size_t index;   // among the kernel's arguments; or CapturedLaunch::Parameter::shape
    };

    const Place* places = nullptr;
    std::size_t count = 0;
    const void* bytes = nullptr;         // of one argument; null: each place has what was captured
    TensorMap* map = nullptr;            // whose bytes of the moment it is
    const LaunchShape* shape = nullptr;  // in place of one, as the bytes are
};

// Reads tensor maps for one launch, as ReadMaps does.
class ReadReplacedMaps {
public:
    ReadReplacedMaps(Replacement* replacements, std::size_t count, const Operands& operands);
    ReadReplacedMaps(const ReadReplacedMaps&) = delete;
    ReadReplacedMaps& operator=(const ReadReplacedMaps&) = delete;

    const Operands& operands() const noexcept { return operands_; }

private:
    std::vector<Buffer*> buffers_;
    std::vector<Ref<TensorMapState>> states_;
    deferred_release::Retention foreign_;
    Operands operands_;
};

}  // namespace ftcuda::core
