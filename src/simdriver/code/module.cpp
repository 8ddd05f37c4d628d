// Exports: modules, their functions and variables.
#include "module.hpp"

#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../checkers/stale_handles.hpp"
#include "../memory/memory.hpp"
#include "../state/allocations.hpp"
#include "../timeline/capture_rules.hpp"
#include "image.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::sim {

namespace {

CUresult find_module(CUmodule handle, std::shared_ptr<Module>& module) {
    module = stale_handles::find(driver_state().modules, handle, "module");
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
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
    module->is_unloaded = true;
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
        double_destruction::report("module unloaded that does not exist");
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

}  // namespace ftcuda::sim
