// Exports: libraries, which are modules for whichever context asks, and their kernels.
#include "library.hpp"

#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../checkers/stale_handles.hpp"
#include "../memory/memory.hpp"
#include "../state/allocations.hpp"
#include "../state/profile.hpp"
#include "../timeline/capture_rules.hpp"
#include "attributes.hpp"
#include "image.hpp"
#include "module.hpp"

#include <algorithm>

namespace ftcuda::sim {

namespace {

CUresult find_library(CUlibrary handle, std::shared_ptr<Library>& library) {
    library = stale_handles::find(driver_state().libraries, handle, "library");
    return library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult find_kernel(CUkernel handle, std::shared_ptr<Kernel>& kernel) {
    kernel = stale_handles::find(driver_state().kernels, handle, "kernel");
    return kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

const ptx::Entry& entry_of(const Kernel& kernel) {
    return driver_state().libraries.find(kernel.library)->program->entries()[kernel.entry];
}

CUresult check_options(const int* options, unsigned count, bool from_file) {
    for (unsigned index = 0; index < count; ++index) {
        switch (options[index]) {
        case CU_LIBRARY_BINARY_IS_PRESERVED:
            if (from_file) return CUDA_ERROR_INVALID_VALUE;
            break;
        case CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE: return CUDA_ERROR_NOT_SUPPORTED;
        default: return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

void free_managed(const Library& library) {
    for (const std::uint64_t address : library.managed) {
        if (Allocation* const allocation = address != 0 ? find_allocation(address, 1) : nullptr) release(*allocation);
    }
}

CUresult load_library(CUlibrary* handle, const void* image, const JitOptions& options) {
    auto library = std::make_shared<Library>();
    if (const CUresult result = load_program(image, options, library->program); result != CUDA_SUCCESS) return result;
    library->kernels.resize(library->program->entries().size());
    const Guard lock(driver_state().mutex);
    for (const ptx::Variable& variable : library->program->variables()) {
        std::uint64_t address = 0;
        if (const CUresult result = variable.managed ? place_variable(0, variable, address) : CUDA_SUCCESS;
            result != CUDA_SUCCESS) {
            free_managed(*library);
            return result;
        }
        library->managed.push_back(address);
    }
    *handle = reinterpret_cast<CUlibrary>(driver_state().libraries.add(library));
    return CUDA_SUCCESS;
}

// The library's module in a context, made when it is first asked for.
CUresult module_in(CUlibrary handle, Context& context, CUmodule& module) {
    const std::shared_ptr<Library> library = driver_state().libraries.find(handle);
    const auto known = library->modules.find(context.handle);
    if (known != library->modules.end()) {
        module = known->second;
        return CUDA_SUCCESS;
    }
    const CUresult result = make_module(context, library->program, handle, library->managed, module);
    if (result == CUDA_SUCCESS) library->modules.emplace(context.handle, module);
    return result;
}

CUresult function_in(const Kernel& kernel, Context& context, CUfunction& function) {
    CUmodule module = nullptr;
    if (const CUresult result = module_in(kernel.library, context, module); result != CUDA_SUCCESS) return result;
    if (const CUresult result = function_named(module, entry_of(kernel).name.c_str(), function); result != CUDA_SUCCESS)
        return result;
    driver_state().functions.find(function)->of_kernel = kernel.attributes[static_cast<std::size_t>(context.device)];
    return CUDA_SUCCESS;
}

CUkernel kernel_of(CUlibrary handle, Library& library, std::size_t entry) {
    CUkernel& known = library.kernels[entry];
    if (known == nullptr) {
        auto kernel = std::make_shared<Kernel>();
        kernel->library = handle;
        kernel->entry = entry;
        for (int device = 0; device < device_count(); ++device)
            kernel->attributes.push_back(std::make_shared<Attributes>(default_attributes));
        known = reinterpret_cast<CUkernel>(driver_state().kernels.add(kernel));
    }
    return known;
}

}  // namespace

CUresult find_function(CUfunction handle, std::shared_ptr<Function>& function, Context* context) {
    function = driver_state().functions.find(handle);
    if (function) return function->module->context->failure;
    const std::shared_ptr<Kernel> kernel = stale_handles::find(driver_state().kernels, handle, "function");
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (context == nullptr) {
        if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    }
    CUfunction its = nullptr;
    if (const CUresult result = function_in(*kernel, *context, its); result != CUDA_SUCCESS) return result;
    function = driver_state().functions.find(its);
    return context->failure;
}

FTCUDA_SIM_EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* image, int* options, void** values,
                                             unsigned count, int* library_options, void**, unsigned library_count) {
    FTCUDA_SIM_ENTER(cuLibraryLoadData);
    if (const CUresult result = check_options(library_options, library_count, false); result != CUDA_SUCCESS)
        return result;
    return load_library(library, image, {count, options, values});
}

FTCUDA_SIM_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, int* options, void** values,
                                                 unsigned count, int* library_options, void**, unsigned library_count) {
    FTCUDA_SIM_ENTER(cuLibraryLoadFromFile);
    if (const CUresult result = check_options(library_options, library_count, true); result != CUDA_SUCCESS)
        return result;
    std::string image;
    if (const CUresult result = read_image(path, image); result != CUDA_SUCCESS) return result;
    return load_library(library, image.c_str(), {count, options, values});
}

FTCUDA_SIM_EXPORT CUresult cuLibraryUnload(CUlibrary handle) {
    FTCUDA_SIM_ENTER(cuLibraryUnload);
    const Guard lock(driver_state().mutex);
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    const std::shared_ptr<Library> library =
        double_destruction::remove(driver_state().libraries, handle, "library unloaded");
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    for (const CUkernel kernel : library->kernels) {
        if (kernel != nullptr) driver_state().kernels.remove(kernel);
    }
    for (const auto& [context, module] : library->modules) unload(module);
    free_managed(*library);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
    FTCUDA_SIM_ENTER(cuLibraryGetKernel);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Library> library;
    if (const CUresult result = find_library(handle, library); result != CUDA_SUCCESS) return result;
    const std::vector<ptx::Entry>& entries = library->program->entries();
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const ptx::Entry& entry) { return entry.name == name; });
    if (found == entries.end()) return CUDA_ERROR_NOT_FOUND;
    *kernel = kernel_of(handle, *library, static_cast<std::size_t>(found - entries.begin()));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary handle) {
    FTCUDA_SIM_ENTER(cuLibraryGetKernelCount);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Library> library;
    if (const CUresult result = find_library(handle, library); result != CUDA_SUCCESS) return result;
    *count = static_cast<unsigned>(library->kernels.size());
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned capacity, CUlibrary handle) {
    FTCUDA_SIM_ENTER(cuLibraryEnumerateKernels);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Library> library;
    if (const CUresult result = find_library(handle, library); result != CUDA_SUCCESS) return result;
    for (std::size_t entry = 0; entry < library->kernels.size() && entry < capacity; ++entry)
        kernels[entry] = kernel_of(handle, *library, entry);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuLibraryGetModule(CUmodule* module, CUlibrary handle) {
    FTCUDA_SIM_ENTER(cuLibraryGetModule);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Library> library;
    if (const CUresult result = find_library(handle, library); result != CUDA_SUCCESS) return result;
    return module_in(handle, *context, *module);
}

FTCUDA_SIM_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, std::size_t* bytes, CUlibrary handle,
                                              const char* name) {
    FTCUDA_SIM_ENTER(cuLibraryGetGlobal);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Library> library;
    if (const CUresult result = find_library(handle, library); result != CUDA_SUCCESS) return result;
    CUmodule module = nullptr;
    if (const CUresult result = module_in(handle, *context, module); result != CUDA_SUCCESS) return result;
    return variable_named(*driver_state().modules.find(module), name, pointer, bytes);
}

FTCUDA_SIM_EXPORT CUresult cuLibraryGetManaged(CUdeviceptr* pointer, std::size_t* bytes, CUlibrary handle,
                                               const char* name) {
    FTCUDA_SIM_ENTER(cuLibraryGetManaged);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Library> library;
    if (const CUresult result = find_library(handle, library); result != CUDA_SUCCESS) return result;
    const std::vector<ptx::Variable>& variables = library->program->variables();
    for (std::size_t index = 0; index < variables.size(); ++index) {
        if (!variables[index].managed || variables[index].name != name) continue;
        if (pointer != nullptr) *pointer = library->managed[index];
        if (bytes != nullptr) *bytes = variables[index].size;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

FTCUDA_SIM_EXPORT CUresult cuKernelGetFunction(CUfunction* function, CUkernel handle) {
    FTCUDA_SIM_ENTER(cuKernelGetFunction);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Kernel> kernel;
    if (const CUresult result = find_kernel(handle, kernel); result != CUDA_SUCCESS) return result;
    return function_in(*kernel, *context, *function);
}

FTCUDA_SIM_EXPORT CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
    FTCUDA_SIM_ENTER(cuKernelGetLibrary);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Kernel> kernel;
    if (const CUresult result = find_kernel(handle, kernel); result != CUDA_SUCCESS) return result;
    *library = kernel->library;
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuKernelGetName(const char** name, CUkernel handle) {
    FTCUDA_SIM_ENTER(cuKernelGetName);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Kernel> kernel;
    if (const CUresult result = find_kernel(handle, kernel); result != CUDA_SUCCESS) return result;
    *name = entry_of(*kernel).name.c_str();
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuKernelGetAttribute(int* value, int attribute, CUkernel handle, CUdevice device) {
    FTCUDA_SIM_ENTER(cuKernelGetAttribute);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Kernel> kernel;
    if (const CUresult result = find_kernel(handle, kernel); result != CUDA_SUCCESS) return result;
    return get_attribute(entry_of(*kernel), *kernel->attributes[static_cast<std::size_t>(device)], attribute, *value);
}

FTCUDA_SIM_EXPORT CUresult cuKernelSetAttribute(int attribute, int value, CUkernel handle, CUdevice device) {
    FTCUDA_SIM_ENTER(cuKernelSetAttribute);
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Kernel> kernel;
    if (const CUresult result = find_kernel(handle, kernel); result != CUDA_SUCCESS) return result;
    return set_attribute(entry_of(*kernel), *kernel->attributes[static_cast<std::size_t>(device)], attribute, value);
}

FTCUDA_SIM_EXPORT CUresult cuKernelGetParamInfo(CUkernel handle, std::size_t index, std::size_t* offset,
                                                std::size_t* bytes) {
    FTCUDA_SIM_ENTER(cuKernelGetParamInfo);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Kernel> kernel;
    if (const CUresult result = find_kernel(handle, kernel); result != CUDA_SUCCESS) return result;
    return parameter_info(entry_of(*kernel), index, offset, bytes);
}

}  // namespace ftcuda::sim
