// Exports: modules, functions and their attributes.
#include "module.hpp"

#include "../calls/gate.hpp"
#include "../state/profile.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::sim {

namespace {

CUresult find_module(CUmodule handle, std::shared_ptr<Module>& module) {
    module = driver_state().modules.find(handle);
    if (module) return CUDA_SUCCESS;
    violation("stale or foreign module handle");
    return CUDA_ERROR_INVALID_HANDLE;
}

// Writes the addresses of variables where the first values of others want them.
void relocate(const Module& module) {
    const std::vector<ptx::Variable>& variables = module.program->variables();
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
}

void free_variables(const Module& module) {
    for (std::size_t index = 0; index < module.addresses.size(); ++index) {
        if (module.library != nullptr && module.program->variables()[index].managed) continue;  // the library's
        if (Allocation* const allocation = find_allocation(module.addresses[index], 1)) release(*allocation);
    }
}

// Where parameters begin in the constant bank: measured on cubins of CUDA 11.8 to 13.5. Alignment applies to bank
// addresses, so an offset in the parameter block depends on it.
std::size_t bank_base() noexcept {
    if (compute_capability() >= 100) return 0x380;
    return compute_capability() >= 90 ? 0x210 : 0x160;
}

CUresult load_module(CUmodule* handle, const void* image, const JitOptions& options) {
    Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    lock.unlock();
    std::shared_ptr<const ptx::Program> program;
    if (const CUresult result = load_program(image, options, program); result != CUDA_SUCCESS) return result;
    lock.lock();
    return make_module(*context, std::move(program), nullptr, {}, *handle);
}

}  // namespace

const ptx::Entry& entry_of(const Function& function) { return function.module->program->entries()[function.entry]; }

CUresult place_variable(int device, const ptx::Variable& variable, std::uint64_t& address) {
    const Kind kind = variable.managed ? Kind::managed : Kind::device;
    const CUresult result = allocate(device, kind, std::max<std::size_t>(variable.size, 1), nullptr, address);
    if (result != CUDA_SUCCESS) return result;
    Allocation& allocation = *find_allocation(address, 1);
    allocation.module_owned = true;
    std::memcpy(allocation.bytes, variable.initial.data(), variable.initial.size());
    return CUDA_SUCCESS;
}

CUresult make_module(Context& context, std::shared_ptr<const ptx::Program> program, CUlibrary library,
                     const std::vector<std::uint64_t>& managed, CUmodule& handle) {
    auto module = std::make_shared<Module>();
    module->context = &context;
    module->program = std::move(program);
    module->library = library;
    const std::vector<ptx::Variable>& variables = module->program->variables();
    for (std::size_t index = 0; index < variables.size(); ++index) {
        std::uint64_t address = 0;
        if (library != nullptr && variables[index].managed) {
            address = managed[index];
        } else if (const CUresult result = place_variable(context.device, variables[index], address);
                   result != CUDA_SUCCESS) {
            free_variables(*module);
            return result;
        }
        module->addresses.push_back(address);
    }
    relocate(*module);
    handle = reinterpret_cast<CUmodule>(driver_state().modules.add(module));
    return CUDA_SUCCESS;
}

void unload(CUmodule handle) {
    const std::shared_ptr<Module> module = driver_state().modules.remove(handle);
    for (const CUfunction function : module->functions) driver_state().functions.remove(function);
    free_variables(*module);
}

CUresult function_named(CUmodule module_handle, const char* name, CUfunction& handle) {
    std::shared_ptr<Module> module;
    if (const CUresult result = find_module(module_handle, module); result != CUDA_SUCCESS) return result;
    if (module->context->failure != CUDA_SUCCESS) return module->context->failure;
    for (const CUfunction known : module->functions) {
        if (entry_of(*driver_state().functions.find(known)).name != name) continue;
        handle = known;
        return CUDA_SUCCESS;
    }
    const std::vector<ptx::Entry>& entries = module->program->entries();
    for (std::size_t index = 0; index < entries.size(); ++index) {
        if (entries[index].name != name) continue;
        auto function = std::make_shared<Function>();
        function->module = module;
        function->module_handle = module_handle;
        function->entry = index;
        handle = reinterpret_cast<CUfunction>(driver_state().functions.add(function));
        module->functions.push_back(handle);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult variable_named(const Module& module, const char* name, CUdeviceptr* pointer, std::size_t* bytes) {
    const std::vector<ptx::Variable>& variables = module.program->variables();
    for (std::size_t index = 0; index < variables.size(); ++index) {
        if (variables[index].name != name) continue;
        if (pointer != nullptr) *pointer = module.addresses[index];
        if (bytes != nullptr) *bytes = variables[index].size;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

FTCUDA_SIM_EXPORT CUresult cuModuleLoadDataEx(CUmodule* handle, const void* image, unsigned count, int* options,
                                              void** values) {
    FTCUDA_SIM_ENTER(cuModuleLoadDataEx);
    return load_module(handle, image, {count, options, values});
}

FTCUDA_SIM_EXPORT CUresult cuModuleLoadData(CUmodule* handle, const void* image) {
    FTCUDA_SIM_ENTER(cuModuleLoadData);
    return load_module(handle, image, {});
}

FTCUDA_SIM_EXPORT CUresult cuModuleLoadFatBinary(CUmodule* handle, const void* image) {
    FTCUDA_SIM_ENTER(cuModuleLoadFatBinary);
    return load_module(handle, image, {});
}

FTCUDA_SIM_EXPORT CUresult cuModuleLoad(CUmodule* handle, const char* path) {
    FTCUDA_SIM_ENTER(cuModuleLoad);
    std::string image;
    if (const CUresult result = read_image(path, image); result != CUDA_SUCCESS) return result;
    return load_module(handle, image.c_str(), {});
}

FTCUDA_SIM_EXPORT CUresult cuModuleUnload(CUmodule handle) {
    FTCUDA_SIM_ENTER(cuModuleUnload);
    const Guard lock(driver_state().mutex);
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    const std::shared_ptr<Module> module = driver_state().modules.find(handle);
    if (!module) {
        violation("module unloaded that does not exist (twice, or foreign)");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (module->library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
    unload(handle);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuModuleGetFunction(CUfunction* handle, CUmodule module, const char* name) {
    FTCUDA_SIM_ENTER(cuModuleGetFunction);
    const Guard lock(driver_state().mutex);
    return function_named(module, name, *handle);
}

FTCUDA_SIM_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, std::size_t* bytes, CUmodule handle,
                                                const char* name) {
    FTCUDA_SIM_ENTER(cuModuleGetGlobal_v2);
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Module> module = driver_state().modules.find(handle);
    return module ? variable_named(*module, name, pointer, bytes) : CUDA_ERROR_INVALID_HANDLE;
}

FTCUDA_SIM_EXPORT CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
    FTCUDA_SIM_ENTER(cuFuncGetModule);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    *module = function->module_handle;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuFuncGetName(const char** name, CUfunction handle) {
    FTCUDA_SIM_ENTER(cuFuncGetName);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    *name = entry_of(*function).name.c_str();
    return CUDA_SUCCESS;
}

namespace {

// The attributes that nobody sets. False for one that the driver does not know.
bool fixed_attribute(const ptx::Entry& entry, int attribute, int& value) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: value = static_cast<int>(entry.max_threads); return true;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: value = static_cast<int>(entry.static_shared_bytes); return true;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: value = 0; return true;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: value = static_cast<int>(entry.local_bytes); return true;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: value = static_cast<int>(entry.registers); return true;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: value = compute_capability(); return true;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: value = 0; return true;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: value = entry.explicit_cluster; return true;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: value = 0; return true;
    default: return false;
    }
}

bool is_of_clusters(int attribute) {
    return attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET &&
           attribute <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
}

}  // namespace

CUresult get_attribute(const ptx::Entry& entry, const Attributes& attributes, int attribute, int& value) {
    if (is_of_clusters(attribute) && profile()->driver_version < 11080) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: {
        const auto& required = entry.required_cluster[0] != 0 ? entry.required_cluster : *attributes.cluster;
        value =
            static_cast<int>(required[static_cast<std::size_t>(attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)]);
        return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        value = *attributes.non_portable_cluster;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: value = *attributes.max_dynamic_shared; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: value = *attributes.carveout; return CUDA_SUCCESS;
    default: return fixed_attribute(entry, attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult set_attribute(const ptx::Entry& entry, Attributes& attributes, int attribute, int value) {
    if (is_of_clusters(attribute) && profile()->driver_version < 11080) return CUDA_ERROR_INVALID_VALUE;
    int opt_in = 0;
    device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, opt_in);
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value + static_cast<int>(entry.static_shared_bytes) > opt_in) return CUDA_ERROR_INVALID_VALUE;
        attributes.max_dynamic_shared = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
        attributes.carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        attributes.non_portable_cluster = value != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (entry.required_cluster[0] != 0) return CUDA_ERROR_NOT_PERMITTED;  // cuda.h: it was set at compile time
        if (value < 0) return CUDA_ERROR_INVALID_VALUE;
        if (!attributes.cluster) attributes.cluster.emplace();
        (*attributes.cluster)[static_cast<std::size_t>(attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)] =
            static_cast<unsigned>(value);
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult parameter_info(const ptx::Entry& entry, std::size_t index, std::size_t* offset, std::size_t* bytes) {
    const std::vector<ptx::Parameter>& parameters = entry.parameters;
    if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    std::size_t at = bank_base();
    for (std::size_t before = 0; before <= index; ++before) {
        const std::size_t alignment = parameters[before].alignment;
        at = (at + alignment - 1) / alignment * alignment;
        if (before != index) at += parameters[before].size;
    }
    if (offset != nullptr) *offset = at - bank_base();
    if (bytes != nullptr) *bytes = parameters[index].size;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction handle) {
    FTCUDA_SIM_ENTER(cuFuncGetAttribute);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    return get_attribute(entry_of(*function), function->effective(), attribute, *value);
}

FTCUDA_SIM_EXPORT CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
    FTCUDA_SIM_ENTER(cuFuncSetAttribute);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    return set_attribute(entry_of(*function), function->own, attribute, value);
}

FTCUDA_SIM_EXPORT CUresult cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset,
                                              std::size_t* bytes) {
    FTCUDA_SIM_ENTER(cuFuncGetParamInfo);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    return parameter_info(entry_of(*function), index, offset, bytes);
}

FTCUDA_SIM_EXPORT CUresult cuFuncLoad(CUfunction handle) {
    FTCUDA_SIM_ENTER(cuFuncLoad);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Function> function;
    return find_function(handle, function);
}

}  // namespace ftcuda::sim
