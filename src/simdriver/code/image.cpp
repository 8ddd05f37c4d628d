#include "image.hpp"

#include "../state/profile.hpp"
#include "cubin.hpp"
#include "fatbin.hpp"

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

// Replaces a cubin by the PTX that it carries. It runs on devices of its own major architecture, from its own minor one
// on, as its machine code would.
CUresult ptx_of_cubin(const JitOptions& options, const char*& image) {
    Cubin cubin;
    if (!read_cubin(image, UINT64_MAX, cubin)) {
        write_log(options, "the image is an ELF file, but no cubin");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    const unsigned device = static_cast<unsigned>(compute_capability());
    const std::string architecture = "sm_" + std::to_string(cubin.architecture);
    if (cubin.architecture / 10 != device / 10 || cubin.architecture > device) {
        write_log(options, "the cubin is for " + architecture + ", the device is sm_" + std::to_string(device));
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (cubin.ptx == nullptr) {
        write_log(options, "the cubin holds machine code for " + architecture +
                               " and the simulated driver runs PTX only: compile to PTX, or to a cubin with the NVRTC "
                               "that `python -m ftcuda.testing env` puts in front");
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    image = cubin.ptx;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult load_program(const void* image, const JitOptions& options, std::shared_ptr<const ptx::Program>& program) {
    const char* text = static_cast<const char*>(image);
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    int newest_ptx = profile()->ptx_version;
    if (is_elf(text)) {
        if (const CUresult result = ptx_of_cubin(options, text); result != CUDA_SUCCESS) return result;
        newest_ptx = newest_ptx / 10 * 10 + 9;  // a driver takes cubins of every compiler of its own major version
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
    const ptx::Target target{compute_capability(), newest_ptx};
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
    if (image.size() < 64) image.resize(64);  // as much as is looked at before anything is known
    Cubin cubin;
    if (is_elf(image.data()) && !read_cubin(image.data(), image.size(), cubin)) return CUDA_ERROR_INVALID_IMAGE;
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
