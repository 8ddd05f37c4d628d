// The scratch memory of one executable, in place of what a graph was captured with: what lies between two kernels is
// not to be shared by launches that overlap.
#pragma once

#include "captured_launch.hpp"

#include <map>

namespace ftcuda::core {

// Constant once others see it.
class Scratch final : public Shared {
public:
    // As much as these launches were captured with; null if they have none.
    static Status allocate(Context& context, const std::vector<const CapturedLaunch*>& launches, Ref<Scratch>& scratch);
    // Bytes of what these launches were captured with.
    static std::size_t size(const std::vector<const CapturedLaunch*>& launches);

    abi::CUdeviceptr in_place_of(const Buffer& captured) const { return own_.at(&captured)->pointer(); }

private:
    Scratch() = default;
    // When no launch runs that has it.
    ~Scratch() override;

    std::map<const Buffer*, Ref<Buffer>> own_;
};

}  // namespace ftcuda::core
