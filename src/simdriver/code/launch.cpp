// Exports: launches.
#include "launch.hpp"

#include "../calls/gate.hpp"
#include "../checkers/late_use.hpp"
#include "../checkers/races.hpp"
#include "../memory/memory.hpp"
#include "../schedule/clock.hpp"
#include "../schedule/scheduler.hpp"
#include "../state/allocations.hpp"
#include "../state/profile.hpp"
#include "../timeline/recording.hpp"
#include "../timeline/stream.hpp"
#include "../timeline/timeline.hpp"
#include "cluster.hpp"
#include "library.hpp"
#include "module.hpp"

#include <cstdio>
#include <cstring>

namespace ftcuda::sim {

namespace {

constexpr std::size_t workspace_bytes =
    4096;  // of a cooperative launch: the barrier that grid synchronisation counts in

// Slices of a kernel after which it may be one that waits for the host, so that no clock waits for its end.
constexpr unsigned long_run = 256;

CUresult result_of(ptx::Fault fault) noexcept {
    switch (fault) {
    case ptx::Fault::none: return CUDA_SUCCESS;
    case ptx::Fault::no_conditional_handle:  // as a driver says
    case ptx::Fault::illegal_address: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ptx::Fault::misaligned_address: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ptx::Fault::tile_place:
    case ptx::Fault::trap:
    case ptx::Fault::breakpoint: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case ptx::Fault::assertion: return CUDA_ERROR_ASSERT;
    case ptx::Fault::invalid_program_counter: return CUDA_ERROR_INVALID_PC;
    case ptx::Fault::stack_overflow: return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case ptx::Fault::tensor_map_mode: return CUDA_ERROR_NOT_SUPPORTED;
    case ptx::Fault::no_tensor_map:
    case ptx::Fault::barrier_misuse:
    case ptx::Fault::cluster_barrier_misuse:
    case ptx::Fault::absent_block:
    case ptx::Fault::barrier_deadlock:
    case ptx::Fault::aborted:
    case ptx::Fault::out_of_budget: break;
    }
    return CUDA_ERROR_LAUNCH_FAILED;
}

CUresult check(const Shape& shape, const Function& function, const ptx::Entry& entry) {
    constexpr unsigned block_limits[3] = {1024, 1024, 64};
    constexpr unsigned grid_limits[3] = {2147483647, 65535, 65535};
    std::uint64_t threads = 1;
    std::uint64_t blocks = 1;
    for (int axis = 0; axis < 3; ++axis) {
        if (shape.block[axis] == 0 || shape.block[axis] > block_limits[axis]) return CUDA_ERROR_INVALID_VALUE;
        if (shape.grid[axis] == 0 || shape.grid[axis] > grid_limits[axis]) return CUDA_ERROR_INVALID_VALUE;
        if (entry.required_block[0] != 0 && shape.block[axis] != entry.required_block[axis])
            return CUDA_ERROR_INVALID_VALUE;
        threads *= shape.block[axis];
        blocks *= shape.grid[axis];
    }
    if (threads > 1024) return CUDA_ERROR_INVALID_VALUE;
    if (threads > entry.max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (static_cast<int>(shape.shared_bytes) > *function.effective().max_dynamic_shared)
        return CUDA_ERROR_INVALID_VALUE;
    if (shape.cooperative) {
        int multiprocessors = 0;
        device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, multiprocessors);
        const std::uint64_t resident = 2048 / ((threads + 31) / 32 * 32) * static_cast<std::uint64_t>(multiprocessors);
        if (blocks > resident) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    return CUDA_SUCCESS;
}

// The parameters as one block, from pointers to each or from the caller's own block.
bool gather(const ptx::Entry& entry, void** parameters, void** extra, std::vector<std::byte>& block) {
    block.resize(entry.parameter_bytes);
    if (parameters != nullptr) {
        for (std::size_t index = 0; index < entry.parameters.size(); ++index) {
            std::memcpy(block.data() + entry.parameters[index].offset, parameters[index], entry.parameters[index].size);
        }
        return true;
    }
    const void* buffer = nullptr;
    std::size_t size = 0;
    for (; extra != nullptr && *extra != nullptr; extra += 2) {
        if (extra[0] == reinterpret_cast<void*>(1)) buffer = extra[1];
        if (extra[0] == reinterpret_cast<void*>(2)) size = *static_cast<std::size_t*>(extra[1]);
    }
    if (entry.parameters.empty()) return true;
    if (buffer == nullptr || size > block.size()) return false;
    std::memcpy(block.data(), buffer, size);
    return true;
}

// Whatever in the parameters looks like an address.
template <class Visit>
void for_each_address(const std::vector<std::byte>& block, Visit visit) {
    for (std::size_t offset = 0; offset + sizeof(std::uint64_t) <= block.size(); offset += sizeof(std::uint64_t)) {
        std::uint64_t address = 0;
        std::memcpy(&address, block.data() + offset, sizeof address);
        visit(address);
    }
}

CUresult run(const Module& module, const ptx::Entry& entry, const Shape& shape,
             const std::vector<std::byte>& parameters, const SetCondition& set_condition) {
    ptx::Launch launch;
    launch.entry = entry.name;
    launch.grid = shape.grid;
    launch.block = shape.block;
    launch.cluster = shape.cluster.blocks;
    launch.is_explicit_cluster = shape.cluster.is_explicit;
    launch.dynamic_shared_bytes = shape.shared_bytes;
    launch.parameters = parameters.data();
    launch.cooperative = shape.cooperative;
    launch.memory = &kernel_memory();
    launch.variable_addresses = module.addresses.data();
    launch.nanoseconds = clock::kernel_nanoseconds;
    launch.print = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); };
    if (races::is_watching()) launch.touched = races::touch;
    launch.set_conditional = set_condition;
    bool runs_long = false;
    if (scheduler::is_scheduled()) {
        launch.slice = [] { scheduler::point("slice of a kernel"); };
    } else {
        launch.slice = [&runs_long, slices = 0u]() mutable {
            if (++slices != long_run) return;
            scheduler::set_runs_long(true);
            runs_long = true;
        };
    }
    if (shape.cooperative) {
        const Guard lock(driver_state().mutex);
        if (const CUresult result =
                allocate(module.context->device, Kind::device, workspace_bytes, nullptr, launch.workspace);
            result != CUDA_SUCCESS) {
            return result;
        }
        std::memset(find_allocation(launch.workspace, 1)->bytes, 0, workspace_bytes);
    }
    const ptx::Outcome outcome = module.program->run(launch);
    if (runs_long) scheduler::set_runs_long(false);
    const Guard lock(driver_state().mutex);
    if (shape.cooperative) release(*find_allocation(launch.workspace, 1));
    if (outcome.fault != ptx::Fault::none) driver_state().last_fault = outcome.message;
    return result_of(outcome.fault);
}

CUresult submit_launch(const LaunchRequest& request, CUstream handle) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    KernelOperation operation;
    if (const CUresult result = describe(request, stream->context, operation); result != CUDA_SUCCESS) return result;
    if (stream->context != operation.function->module->context) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
        std::vector<Use> uses = uses_of(operation);
        record(*stream, {std::move(operation), std::move(uses)});
    } else {
        submit(*stream, prepare(operation));
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult describe(const LaunchRequest& request, Context* context, KernelOperation& operation) {
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(request.function, function, context); result != CUDA_SUCCESS)
        return result;
    if (request.parameters != nullptr && request.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    const ptx::Entry& entry = entry_of(*function);
    Shape shape = request.shape;
    if (const CUresult result = check(shape, *function, entry); result != CUDA_SUCCESS) return result;
    if (const CUresult result =
            find_cluster(*function, shape.grid, shape.threads(), shape.shared_bytes, request.cluster, shape.cluster);
        result != CUDA_SUCCESS)
        return result;
    std::vector<std::byte> block;
    if (!gather(entry, request.parameters, request.extra, block)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    operation = {request.function, std::move(function), shape, std::move(block)};
    return CUDA_SUCCESS;
}

std::vector<Use> uses_of(const KernelOperation& operation) {
    std::vector<Use> uses;
    for_each_address(operation.parameters, [&](std::uint64_t address) { late_use::remember(address, uses); });
    return uses;
}

Work prepare(const KernelOperation& operation, const SetCondition& set_condition) {
    const ptx::Entry& entry = entry_of(*operation.function);
    Work work;
    work.what = "kernel " + std::string(entry.name);
    // In use until the kernel is done.
    for_each_address(operation.parameters, [&](std::uint64_t address) { begin_touch(address, work.touches); });
    work.run = [module = operation.function->module, &entry, shape = operation.shape, block = operation.parameters,
                set_condition] { return run(*module, entry, shape, block, set_condition); };
    return work;
}

FTCUDA_SIM_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                          CUstream stream, void** parameters, void** extra) {
    FTCUDA_SIM_ENTER(cuLaunchKernel);
    const Shape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, false};
    return submit_launch({function, shape, parameters, extra}, stream);
}

FTCUDA_SIM_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                                     unsigned block_z, unsigned shared_bytes, CUstream stream,
                                                     void** parameters) {
    FTCUDA_SIM_ENTER(cuLaunchCooperativeKernel);
    const Shape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, true};
    return submit_launch({function, shape, parameters}, stream);
}

FTCUDA_SIM_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                            void** extra) {
    FTCUDA_SIM_ENTER(cuLaunchKernelEx);
    Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ},
                config->sharedMemBytes,
                false};
    for (unsigned index = 0; index < config->numAttrs; ++index) {
        const CUlaunchAttribute& attribute = config->attrs[index];
        switch (attribute.id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: shape.cooperative = attribute.value.cooperative != 0; break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:                  // cluster_attribute() finds it
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:  // permitted, not required, to overlap
        case CU_LAUNCH_ATTRIBUTE_PRIORITY: break;
        default: return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return submit_launch({function, shape, parameters, extra, cluster_attribute(*config)}, config->hStream);
}

}  // namespace ftcuda::sim
