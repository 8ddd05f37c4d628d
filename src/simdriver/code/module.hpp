// Modules and the functions in them. Under the lock.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

const ptx::Entry& entry_of(const Function& function);

CUresult function_named(CUmodule module, const char* name, CUfunction& function);

// A module of the program in a context, with memory for its variables. Those of a library that are managed are the
// library's.
CUresult make_module(Context& context, std::shared_ptr<const ptx::Program> program, CUlibrary library,
                     const std::vector<std::uint64_t>& managed, CUmodule& module);
void unload(CUmodule module);
CUresult variable_named(const Module& module, const char* name, CUdeviceptr* pointer, std::size_t* bytes);

// Memory for one variable, with its first value.
CUresult place_variable(int device, const ptx::Variable& variable, std::uint64_t& address);

}  // namespace ftcuda::sim
