#include "kernel.hpp"

#include "../../_driver/table.hpp"
#include "../sync/mutex.hpp"

#include <algorithm>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

Mutex allowance_mutex{Rank::allowance};

}  // namespace

Status Kernel::get(Module& module, std::string name, Context& context, Ref<Kernel>& kernel, std::string& log) {
    Ref<Kernel> made = Ref<Kernel>::adopt(new Kernel(std::move(name), Ref<Module>(module)));
    for (auto& allowed : made->shared_allowed_) allowed.store(shared_without_asking, std::memory_order_relaxed);
    CUfunction cu_function = nullptr;
    if (const Status status = module.function(context, made->name_.c_str(), cu_function, log); !status.ok())
        return status;
    made->functions_[static_cast<std::size_t>(context.device().ordinal())].store(cu_function,
                                                                                 std::memory_order_release);
    made->identity_ = cu_function;
    if (Context& home = module.home(); &home != &context) {
        if (const Status status = module.function(home, made->name_.c_str(), made->identity_, log); !status.ok())
            return status;
    }
    made->has_layout_ = parameter_layout(module.signatures(), made->name_, made->layout_);
    if (!made->has_layout_) {
        if (const Status status = made->ask_for_layout(context, cu_function); !status.ok()) return status;
    }
    made->arguments_ = ArgumentLayout(made->layout_);
    kernel = std::move(made);
    return {};
}

Status Kernel::wrap(Context& context, CUfunction cu_function, Ref<Kernel>& kernel) {
    Ref<Kernel> made = Ref<Kernel>::adopt(new Kernel("", Ref<Module>()));
    for (auto& allowed : made->shared_allowed_) allowed.store(shared_without_asking, std::memory_order_relaxed);
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    made->functions_[static_cast<std::size_t>(context.device().ordinal())].store(cu_function,
                                                                                 std::memory_order_release);
    made->identity_ = cu_function;
    if (const Status status = made->ask_for_layout(context, cu_function); !status.ok()) return status;
    made->arguments_ = ArgumentLayout(made->layout_);
    kernel = std::move(made);
    return {};
}

Status Kernel::ask_for_layout(Context& context, CUfunction cu_function) {
    if (!cu.cuFuncGetParamInfo) return {};
    // There is no count before CUDA 13.2: the first index past the end is an invalid value. Any other error is not the
    // end: taken for it, a kernel would seem to have fewer parameters, and the driver would read past the arguments
    // that are given.
    for (std::size_t index = 0;; ++index) {
        std::size_t offset = 0;
        std::size_t size = 0;
        const Status status = context.observe(cu.cuFuncGetParamInfo(cu_function, index, &offset, &size));
        if (status.is(CUDA_ERROR_INVALID_VALUE)) break;
        if (!status.ok()) return status;
        layout_.parameters.push_back(
            {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size), ParameterKind::unknown});
    }
    layout_.offsets_known = true;
    has_layout_ = true;
    return {};
}

Status Kernel::find_function(Context& context, CUfunction& cu_function) noexcept {
    if (!module_) return Reason::wrong_device;  // a foreign function belongs to the one device it was loaded on
    std::string log;
    const Status status = module_->function(context, name_.c_str(), cu_function, log);
    if (status.ok()) {
        functions_[static_cast<std::size_t>(context.device().ordinal())].store(cu_function, std::memory_order_release);
    }
    return status;
}

Status Kernel::raise_dynamic_shared(Context& context, CUfunction cu_function, std::size_t bytes) noexcept {
    FTCUDA_SCHEDULE_POINT("raise the allowance");
    // Asking and telling are one step: told a smaller number after a larger one, the driver would refuse a launch that
    // another thread was promised. One lock for all kernels, since several may be the same function.
    const Lock lock(allowance_mutex);
    int current = 0;
    Status status =
        context.observe(cu.cuFuncGetAttribute(&current, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, cu_function));
    if (status.ok() && current < static_cast<int>(bytes)) {
        current = static_cast<int>(bytes);
        status = context.observe(
            cu.cuFuncSetAttribute(cu_function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, current));
    }
    if (status.ok())
        shared_allowed_[static_cast<std::size_t>(context.device().ordinal())].store(static_cast<std::uint32_t>(current),
                                                                                    std::memory_order_relaxed);
    return status;
}

template <class Question>
Status Kernel::ask(Context& context, Question question) noexcept {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    CUfunction cu_function = nullptr;
    if (const Status status = function(context, cu_function); !status.ok()) return status;
    return context.observe(question(cu_function));
}

Status Kernel::get_attribute(Context& context, int attribute, int& value) noexcept {
    return ask(context, [&](CUfunction f) { return cu.cuFuncGetAttribute(&value, attribute, f); });
}

Status Kernel::set_attribute(Context& context, int attribute, int value) noexcept {
    return ask(context, [&](CUfunction f) -> Status {
        if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
            return cu.cuFuncSetAttribute(f, attribute, value);
        return raise_dynamic_shared(context, f, static_cast<std::size_t>(std::max(value, 0)));
    });
}

Status Kernel::max_active_blocks(Context& context, int block_size, std::size_t shared_bytes, int& blocks) noexcept {
    return ask(context, [&](CUfunction f) {
        return cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, block_size, shared_bytes);
    });
}

Status Kernel::max_potential_block_size(Context& context, std::size_t shared_bytes, int block_limit, int& min_grid,
                                        int& block) noexcept {
    return ask(context, [&](CUfunction f) {
        return cu.cuOccupancyMaxPotentialBlockSize(&min_grid, &block, f, nullptr, shared_bytes, block_limit);
    });
}

Status Kernel::available_dynamic_shared(Context& context, int blocks, int block_size, std::size_t& bytes) noexcept {
    return ask(context,
               [&](CUfunction f) { return cu.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, blocks, block_size); });
}

Status Kernel::max_potential_cluster_size(Context& context, const CUlaunchConfig& config, int& size) noexcept {
    return ask(context, [&](CUfunction f) { return cu.cuOccupancyMaxPotentialClusterSize(&size, f, &config); });
}

Status Kernel::max_active_clusters(Context& context, const CUlaunchConfig& config, int& clusters) noexcept {
    return ask(context, [&](CUfunction f) { return cu.cuOccupancyMaxActiveClusters(&clusters, f, &config); });
}

}  // namespace ftcuda::core
