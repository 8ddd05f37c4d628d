// Images of code: from bytes or a file to a program.
#include "fatbin.hpp"
#include "module.hpp"
#include "profile.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace ftcuda::sim {

namespace {

void write_log(const JitOptions& options, const std::string& log) {
    char* buffer = nullptr;
    std::size_t capacity = 0;
    for (unsigned index = 0; index < options.count; ++index) {
        void* const value = options.values[index];
        if (options.names[index] == CU_JIT_ERROR_LOG_BUFFER) buffer = static_cast<char*>(value);
        if (options.names[index] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            capacity = reinterpret_cast<std::uintptr_t>(value);
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

}  // namespace

CUresult load_program(const void* image, const JitOptions& options, std::shared_ptr<const ptx::Program>& program) {
    const char* text = static_cast<const char*>(image);
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (std::memcmp(text,
                    "\x7f"
                    "ELF",
                    4) == 0) {
        write_log(options, "the simulated driver runs PTX only: compile to PTX");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    std::string unpacked;
    std::string log;
    if (is_fatbin(text)) {
        unpacked = ptx_of_fatbin(text, compute_capability(), log);
        if (unpacked.empty()) {
            write_log(options, log);
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
        }
        text = unpacked.c_str();
    }
    const ptx::Target target{compute_capability(), profile()->ptx_version};
    ptx::LoadError error = ptx::LoadError::none;
    program = ptx::Program::load(text, target, error, log);
    if (!program) write_log(options, log);
    return result_of(error);
}

CUresult read_image(const char* path, std::string& image) {
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    image.assign(std::istreambuf_iterator<char>(file), {});
    if (image.size() < 4) image.resize(4);  // as much as is looked at before anything is known
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
