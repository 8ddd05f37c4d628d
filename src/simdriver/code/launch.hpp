// Launches of kernels, by streams and by graphs. Under the lock.
#pragma once

#include "../state/driver_state.hpp"
#include "../state/operation.hpp"

namespace ftcuda::sim {

struct LaunchRequest {
    CUfunction function = nullptr;  // or a kernel
    Shape shape{};
    void** parameters = nullptr;
    void** extra = nullptr;
    const CUlaunchAttribute* cluster = nullptr;
};

// The launch as it can be done any number of times: the arguments are copied. Or the driver's error. A kernel is its
// function in `context`, or in the current one for null.
CUresult describe(const LaunchRequest& request, Context* context, KernelOperation& operation);
// What its arguments name.
std::vector<Use> uses_of(const KernelOperation& operation);

// What cudaGraphSetConditional does, without the lock; empty for launches that are not of a graph with conditions.
using SetCondition = std::function<void(std::uint64_t handle, std::uint32_t value)>;
Work prepare(const KernelOperation& operation, const SetCondition& set_condition = {});

}  // namespace ftcuda::sim
