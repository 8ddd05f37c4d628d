// Modules, libraries and the functions in them, as the exports share them. Everything is called under the lock
// but what says otherwise.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

// What a program says when it loads an image, and where it wants to read what was wrong.
struct JitOptions {
    unsigned count = 0;
    const int* names = nullptr;
    void* const* values = nullptr;
};

// Without the lock. The PTX in an image, or the driver's error.
CUresult load_program(const void* image, const JitOptions& options, std::shared_ptr<const ptx::Program>& program);
// Without the lock. A file's bytes and a zero behind them.
CUresult read_image(const char* path, std::string& image);

const ptx::Entry& entry_of(const Function& function);

// On one multiprocessor at once.
int blocks_that_fit(const Function& function, int block_size, std::size_t dynamic_shared);

// The function behind a handle, which may be a kernel's: then its function in `context`, or in the
// current one for null.
CUresult find_function(CUfunction handle, std::shared_ptr<Function>& function, Context* context = nullptr);
CUresult function_named(CUmodule module, const char* name, CUfunction& function);
CUresult parameter_info(const ptx::Entry& entry, std::size_t index, std::size_t* offset, std::size_t* bytes);

// An attribute of a function or a kernel; in `attributes` everything has a value.
CUresult get_attribute(const ptx::Entry& entry, const Attributes& attributes, int attribute, int& value);
CUresult set_attribute(const ptx::Entry& entry, Attributes& attributes, int attribute, int value);

// A module of the program in a context, with memory for its variables. Those of a library that are
// managed are the library's.
CUresult make_module(Context& context, std::shared_ptr<const ptx::Program> program, CUlibrary library,
                     const std::vector<std::uint64_t>& managed, CUmodule& module);
void unload(CUmodule module);
CUresult variable_named(const Module& module, const char* name, CUdeviceptr* pointer, std::size_t* bytes);

// Memory for one variable, with its first value.
CUresult place_variable(int device, const ptx::Variable& variable, std::uint64_t& address);

}  // namespace ftcuda::sim
