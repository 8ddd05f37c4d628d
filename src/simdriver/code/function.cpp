// Exports: functions.
#include "../calls/gate.hpp"
#include "attributes.hpp"
#include "library.hpp"
#include "module.hpp"

namespace ftcuda::sim {

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
