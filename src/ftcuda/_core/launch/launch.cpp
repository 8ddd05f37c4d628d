#include "launch.hpp"

#include "../../_driver/table.hpp"

#include <algorithm>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

Status submit(const CUlaunchConfig& config, const LaunchShape& shape, CUfunction function, void** parameters) noexcept {
    if (cu.cuLaunchKernelEx) return cu.cuLaunchKernelEx(&config, function, parameters, nullptr);
    // Drivers before 11.8.
    if (shape.needs_attributes()) return Status(Reason::absent, Entry::cuLaunchKernelEx);
    if (shape.is_cooperative()) {
        return cu.cuLaunchCooperativeKernel(function, config.gridDimX, config.gridDimY, config.gridDimZ,
                                            config.blockDimX, config.blockDimY, config.blockDimZ, config.sharedMemBytes,
                                            config.hStream, parameters);
    }
    return cu.cuLaunchKernel(function, config.gridDimX, config.gridDimY, config.gridDimZ, config.blockDimX,
                             config.blockDimY, config.blockDimZ, config.sharedMemBytes, config.hStream, parameters,
                             nullptr);
}

// In place of a submission, for who is inside the stream already.
struct AlreadyInside {
    explicit AlreadyInside(Stream&) noexcept {}
    Status status() const noexcept { return {}; }
};

// In line, so that neither pays for there being two.
template <typename Way>
[[gnu::always_inline]] inline Status launch_by(Stream& stream, const LaunchShape& shape, Kernel& kernel,
                                               const Arguments& arguments) {
    const Way inside(stream);
    if (!inside.status().ok()) return inside.status();
    OperandLeases leases(stream, arguments.operands);
    if (!leases.status().ok()) return leases.status();
    Context& context = stream.context();
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    CUfunction function = nullptr;
    if (const Status status = kernel.function(context, function); !status.ok()) return status;
    CUlaunchConfig config = shape.config();
    config.hStream = stream.cu_stream();
    if (const Status status = kernel.allow_dynamic_shared(context, function, config.sharedMemBytes); !status.ok())
        return status;
    return leases.submit([&] { return submit(config, shape, function, arguments.parameters); }, &kernel);
}

}  // namespace

LaunchShape::LaunchShape(Dimensions grid, Dimensions block, const Dimensions* cluster, unsigned shared_bytes,
                         bool cooperative, bool programmatic_serialization) noexcept
    : cooperative_(cooperative), cluster_(cluster != nullptr), serialization_(programmatic_serialization) {
    const Dimensions blocks = cluster != nullptr ? *cluster : Dimensions{};
    config_.gridDimX = grid.x * blocks.x;
    config_.gridDimY = grid.y * blocks.y;
    config_.gridDimZ = grid.z * blocks.z;
    config_.blockDimX = block.x;
    config_.blockDimY = block.y;
    config_.blockDimZ = block.z;
    config_.sharedMemBytes = shared_bytes;
    config_.attrs = attributes_.data();
    CUlaunchAttribute attribute{};
    if (cluster != nullptr) {
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim.x = cluster->x;
        attribute.value.clusterDim.y = cluster->y;
        attribute.value.clusterDim.z = cluster->z;
        add(attribute);
    }
    attribute = {};
    if (cooperative) {
        attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute.value.cooperative = 1;
        add(attribute);
    }
    attribute = {};
    if (programmatic_serialization) {
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
        add(attribute);
    }
}

bool LaunchShape::has_attributes_of(const LaunchShape& other) const noexcept {
    const auto same = [](const CUlaunchAttribute& mine, const CUlaunchAttribute& theirs) {
        if (mine.id != theirs.id) return false;
        if (mine.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return true;  // each other one is there or not
        return mine.value.clusterDim.x == theirs.value.clusterDim.x &&
               mine.value.clusterDim.y == theirs.value.clusterDim.y &&
               mine.value.clusterDim.z == theirs.value.clusterDim.z;
    };
    return std::equal(config_.attrs, config_.attrs + config_.numAttrs, other.config_.attrs,
                      other.config_.attrs + other.config_.numAttrs, same);
}

Status launch_inside(Stream& stream, const LaunchShape& shape, Kernel& kernel, const Arguments& arguments) {
    if (arguments.map_count == 0) return launch_by<AlreadyInside>(stream, shape, kernel, arguments);
    const ReadMaps read(arguments, kernel.arguments().slots.size());
    return launch_by<AlreadyInside>(stream, shape, kernel, read.arguments());
}

Status launch(Stream& stream, const LaunchShape& shape, Kernel& kernel, const Arguments& arguments) {
    if (arguments.map_count == 0) return launch_by<Submission>(stream, shape, kernel, arguments);
    const Submission inside(stream);
    return inside.status().ok() ? launch_inside(stream, shape, kernel, arguments) : inside.status();
}

}  // namespace ftcuda::core
