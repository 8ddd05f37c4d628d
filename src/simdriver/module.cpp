// Exports: modules, functions and their attributes, occupancy.
#include "fatbin.hpp"
#include "gate.hpp"
#include "profile.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::sim {

namespace {

constexpr int threads_per_multiprocessor = 2048;
constexpr int blocks_per_multiprocessor = 32;
constexpr int shared_per_multiprocessor = 100 * 1024;
constexpr int registers_per_multiprocessor = 65536;

const ptx::Entry& entry_of(const Function& function) { return function.module->program->entries()[function.entry]; }

CUresult find_function(CUfunction handle, std::shared_ptr<Function>& function) {
    function = world().functions.find(handle);
    if (!function) {
        violation("stale or foreign function handle");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return function->module->context->failure;
}

void write_log(unsigned count, const int* options, void* const* values, const std::string& log) {
    char* buffer = nullptr;
    std::size_t capacity = 0;
    for (unsigned index = 0; index < count; ++index) {
        if (options[index] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(values[index]);
        if (options[index] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) capacity = reinterpret_cast<std::uintptr_t>(values[index]);
    }
    if (buffer == nullptr || capacity == 0) return;
    const std::size_t length = std::min(log.size(), capacity - 1);
    std::memcpy(buffer, log.data(), length);
    buffer[length] = '\0';
}

CUresult result_of(ptx::LoadError error) noexcept {
    switch (error) {
    case ptx::LoadError::none: return CUDA_SUCCESS;
    case ptx::LoadError::newer_ptx_version: return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    case ptx::LoadError::newer_target: return CUDA_ERROR_NO_BINARY_FOR_GPU;
    case ptx::LoadError::unresolved_symbol:
    case ptx::LoadError::syntax:
    case ptx::LoadError::unsupported: break;
    }
    return CUDA_ERROR_INVALID_PTX;
}

// Gives the module's variables their memory and first values.
CUresult place_variables(Module& module) {
    const std::vector<ptx::Variable>& variables = module.program->variables();
    for (const ptx::Variable& variable : variables) {
        std::uint64_t begin = 0;
        const Kind kind = variable.managed ? Kind::managed : Kind::device;
        const CUresult result = allocate(module.context->device, kind, std::max<std::size_t>(variable.size, 1), nullptr, begin);
        if (result != CUDA_SUCCESS) return result;
        Allocation& allocation = *find_allocation(begin, 1);
        allocation.module_owned = true;
        std::memcpy(allocation.bytes, variable.initial.data(), variable.initial.size());
        module.addresses.push_back(begin);
    }
    for (std::size_t index = 0; index < variables.size(); ++index) {
        Allocation& allocation = *find_allocation(module.addresses[index], 1);
        for (const ptx::Variable::Relocation& relocation : variables[index].relocations) {
            for (std::size_t target = 0; target < variables.size(); ++target) {
                if (variables[target].name != relocation.symbol) continue;
                const std::uint64_t address = module.addresses[target] + static_cast<std::uint64_t>(relocation.addend);
                std::memcpy(allocation.bytes + relocation.offset, &address, sizeof address);
            }
        }
    }
    return CUDA_SUCCESS;
}

void free_variables(Module& module) {
    for (const std::uint64_t address : module.addresses) {
        if (Allocation* const allocation = find_allocation(address, 1)) release(*allocation);
    }
}

// Where parameters begin in the constant bank: measured on cubins of CUDA 11.8 to 13.5. Alignment applies to bank addresses,
// so an offset in the parameter block depends on it.
std::size_t bank_base() noexcept {
    if (compute_capability() >= 100) return 0x380;
    return compute_capability() >= 90 ? 0x210 : 0x160;
}

int blocks_that_fit(const Function& function, int block_size, std::size_t dynamic_shared) {
    const ptx::Entry& entry = entry_of(function);
    if (block_size <= 0 || block_size > static_cast<int>(entry.max_threads)) return 0;
    int blocks = std::min(blocks_per_multiprocessor, threads_per_multiprocessor / ((block_size + 31) / 32 * 32));
    const std::size_t shared = entry.static_shared_bytes + dynamic_shared + 1024;  // 1 KiB of each block is the system's
    blocks = std::min(blocks, static_cast<int>(shared_per_multiprocessor / shared));
    const int registers = static_cast<int>(std::max(entry.registers, 16u)) * ((block_size + 31) / 32 * 32);
    return std::min(blocks, registers_per_multiprocessor / std::max(registers, 1));
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuModuleLoadDataEx(CUmodule* handle, const void* image, unsigned count, int* options, void** values) {
    FTCUDA_SIM_ENTER(cuModuleLoadDataEx);
    const char* text = static_cast<const char*>(image);
    Guard lock(world().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    if (std::memcmp(text, "\x7f" "ELF", 4) == 0) {
        write_log(count, options, values, "the simulated driver runs PTX only: compile to PTX");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    lock.unlock();
    std::string unpacked;
    std::string log;
    if (is_fatbin(text)) {
        unpacked = ptx_of_fatbin(text, compute_capability(), log);
        if (unpacked.empty()) {
            write_log(count, options, values, log);
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
        }
        text = unpacked.c_str();
    }
    const ptx::Target target{compute_capability(), profile()->ptx_version};
    ptx::LoadError error = ptx::LoadError::none;
    std::unique_ptr<const ptx::Program> program = ptx::Program::load(text, target, error, log);
    if (!program) {
        write_log(count, options, values, log);
        return result_of(error);
    }
    lock.lock();
    auto module = std::make_shared<Module>();
    module->context = context;
    module->program = std::move(program);
    if (const CUresult result = place_variables(*module); result != CUDA_SUCCESS) {
        free_variables(*module);
        return result;
    }
    *handle = reinterpret_cast<CUmodule>(world().modules.add(module));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuModuleUnload(CUmodule handle) {
    FTCUDA_SIM_ENTER(cuModuleUnload);
    const Guard lock(world().mutex);
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    const std::shared_ptr<Module> module = world().modules.remove(handle);
    if (!module) {
        violation("module unloaded that does not exist (twice, or foreign)");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (const CUfunction function : module->functions) world().functions.remove(function);
    free_variables(*module);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuModuleGetFunction(CUfunction* handle, CUmodule module_handle, const char* name) {
    FTCUDA_SIM_ENTER(cuModuleGetFunction);
    const Guard lock(world().mutex);
    const std::shared_ptr<Module> module = world().modules.find(module_handle);
    if (!module) {
        violation("stale or foreign module handle");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (module->context->failure != CUDA_SUCCESS) return module->context->failure;
    for (const CUfunction known : module->functions) {
        if (entry_of(*world().functions.find(known)).name != name) continue;
        *handle = known;
        return CUDA_SUCCESS;
    }
    const std::vector<ptx::Entry>& entries = module->program->entries();
    for (std::size_t index = 0; index < entries.size(); ++index) {
        if (entries[index].name != name) continue;
        auto function = std::make_shared<Function>();
        function->module = module;
        function->module_handle = module_handle;
        function->entry = index;
        *handle = reinterpret_cast<CUfunction>(world().functions.add(function));
        module->functions.push_back(*handle);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

FTCUDA_SIM_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, std::size_t* bytes, CUmodule handle, const char* name) {
    FTCUDA_SIM_ENTER(cuModuleGetGlobal_v2);
    const Guard lock(world().mutex);
    const std::shared_ptr<Module> module = world().modules.find(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    const std::vector<ptx::Variable>& variables = module->program->variables();
    for (std::size_t index = 0; index < variables.size(); ++index) {
        if (variables[index].name != name) continue;
        if (pointer != nullptr) *pointer = module->addresses[index];
        if (bytes != nullptr) *bytes = variables[index].size;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

FTCUDA_SIM_EXPORT CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction handle) {
    FTCUDA_SIM_ENTER(cuFuncGetAttribute);
    const Guard lock(world().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    const ptx::Entry& entry = entry_of(*function);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = static_cast<int>(entry.max_threads); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(entry.static_shared_bytes); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = 0; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(entry.local_bytes); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = static_cast<int>(entry.registers); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = compute_capability(); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = function->max_dynamic_shared; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function->carveout; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if (profile()->driver_version < 11080) return CUDA_ERROR_INVALID_VALUE;
        *value = 0;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

FTCUDA_SIM_EXPORT CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
    FTCUDA_SIM_ENTER(cuFuncSetAttribute);
    const Guard lock(world().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    int opt_in = 0;
    device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, opt_in);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value + static_cast<int>(entry_of(*function).static_shared_bytes) > opt_in) return CUDA_ERROR_INVALID_VALUE;
        function->max_dynamic_shared = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
        function->carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

FTCUDA_SIM_EXPORT CUresult cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset, std::size_t* size) {
    FTCUDA_SIM_ENTER(cuFuncGetParamInfo);
    const Guard lock(world().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    const std::vector<ptx::Parameter>& parameters = entry_of(*function).parameters;
    if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    std::size_t at = bank_base();
    for (std::size_t before = 0; before <= index; ++before) {
        const std::size_t alignment = parameters[before].alignment;
        at = (at + alignment - 1) / alignment * alignment;
        if (before != index) at += parameters[before].size;
    }
    if (offset != nullptr) *offset = at - bank_base();
    if (size != nullptr) *size = parameters[index].size;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuFuncLoad(CUfunction handle) {
    FTCUDA_SIM_ENTER(cuFuncLoad);
    const Guard lock(world().mutex);
    std::shared_ptr<Function> function;
    return find_function(handle, function);
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int block_size, std::size_t shared_bytes) {
    FTCUDA_SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    const Guard lock(world().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = blocks_that_fit(*function, block_size, shared_bytes);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_for_block,
                                                            std::size_t shared_bytes, int block_limit) {
    FTCUDA_SIM_ENTER(cuOccupancyMaxPotentialBlockSize);
    const Guard lock(world().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    const int limit = static_cast<int>(entry_of(*function).max_threads);
    int best_threads = 0;
    for (int size = block_limit > 0 ? std::min(block_limit, limit) : limit; size > 0; size = (size - 1) / 32 * 32) {
        const int blocks = blocks_that_fit(*function, size, shared_for_block != nullptr ? shared_for_block(size) : shared_bytes);
        if (blocks * size <= best_threads) continue;
        best_threads = blocks * size;
        *block = size;
        device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, *min_grid);
        *min_grid *= blocks;
    }
    return best_threads != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction handle, int blocks, int block_size) {
    FTCUDA_SIM_ENTER(cuOccupancyAvailableDynamicSMemPerBlock);
    const Guard lock(world().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    if (blocks <= 0 || block_size <= 0 || blocks_that_fit(*function, block_size, 0) < blocks) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t share = static_cast<std::size_t>(shared_per_multiprocessor / blocks) - 1024 - entry_of(*function).static_shared_bytes;
    *bytes = std::min(share, static_cast<std::size_t>(function->max_dynamic_shared));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int*, CUfunction, const CUlaunchConfig*) {
    FTCUDA_SIM_ENTER(cuOccupancyMaxPotentialClusterSize);
    return CUDA_ERROR_NOT_SUPPORTED;  // the simulated device has no clusters: attribute CLUSTER_LAUNCH is 0
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyMaxActiveClusters(int*, CUfunction, const CUlaunchConfig*) {
    FTCUDA_SIM_ENTER(cuOccupancyMaxActiveClusters);
    return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace ftcuda::sim
