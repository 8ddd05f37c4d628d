// Exports: copies and fills.
#include "../calls/gate.hpp"
#include "../state/allocations.hpp"
#include "../timeline/capture_rules.hpp"
#include "../timeline/recording.hpp"
#include "../timeline/stream.hpp"
#include "../timeline/timeline.hpp"
#include "transfer.hpp"

namespace ftcuda::sim {

namespace {

template <class Described>
CUresult capture(Stream& stream, const Described& operation) {
    record(stream, {operation, uses_of(operation)});
    return CUDA_SUCCESS;
}

template <class Unit>
CUresult fill(CUdeviceptr pointer, Unit value, std::size_t count, CUstream handle) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    if (pointer % sizeof(Unit) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) return CUDA_SUCCESS;
    const FillOperation operation = linear_fill(pointer, value, sizeof(Unit), count);
    if (const CUresult result = check(operation); result != CUDA_SUCCESS) return result;
    if (stream->capture) return capture(*stream, operation);
    submit(*stream, prepare(operation));
    return CUDA_SUCCESS;
}

// The calls without a stream use the legacy one, and return when the copy is done.
enum class Until : unsigned char { submitted, done };

CUresult copy(const End& destination, const End& source, std::size_t bytes, CUstream handle, Until until) {
    Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (until == Until::done) {
        if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    }
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    if (bytes == 0) return CUDA_SUCCESS;
    const CopyOperation operation = linear_copy(destination, source, bytes);
    if (const CUresult result = check(operation); result != CUDA_SUCCESS) return result;
    if (stream->capture) return capture(*stream, operation);
    // From pageable memory the source is read before the call returns; to pageable memory the call returns after the
    // copy.
    const Point point = submit(*stream, prepare(operation, Reads::when_prepared));
    return is_to_pageable(operation) || until == Until::done ? wait_for(lock, *stream->context, point) : CUDA_SUCCESS;
}

// From or to an address that must be the device's.
bool is_of_device(CUdeviceptr pointer) {
    const Guard lock(driver_state().mutex);
    return allocation_at(pointer) != nullptr;
}

CUdeviceptr address_of(const void* host) noexcept { return reinterpret_cast<std::uintptr_t>(host); }

CUresult upload(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream, Until until) {
    if (bytes != 0 && !is_of_device(destination)) return CUDA_ERROR_INVALID_VALUE;
    return copy({destination, CU_MEMORYTYPE_DEVICE}, {address_of(source), CU_MEMORYTYPE_HOST}, bytes, stream, until);
}

CUresult download(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream, Until until) {
    if (bytes != 0 && !is_of_device(source)) return CUDA_ERROR_INVALID_VALUE;
    return copy({address_of(destination), CU_MEMORYTYPE_HOST}, {source, CU_MEMORYTYPE_DEVICE}, bytes, stream, until);
}

CUresult copy_on_device(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream stream, Until until) {
    if (bytes != 0 && (!is_of_device(destination) || !is_of_device(source))) return CUDA_ERROR_INVALID_VALUE;
    return copy({destination, CU_MEMORYTYPE_DEVICE}, {source, CU_MEMORYTYPE_DEVICE}, bytes, stream, until);
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes,
                                         CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemcpyAsync);
    return copy({destination}, {source}, bytes, stream, Until::submitted);
}

FTCUDA_SIM_EXPORT CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes) {
    FTCUDA_SIM_ENTER(cuMemcpy);
    return copy({destination}, {source}, bytes, nullptr, Until::done);
}

FTCUDA_SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, std::size_t bytes) {
    FTCUDA_SIM_ENTER(cuMemcpyHtoD_v2);
    return upload(destination, source, bytes, nullptr, Until::done);
}

FTCUDA_SIM_EXPORT CUresult cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, std::size_t bytes) {
    FTCUDA_SIM_ENTER(cuMemcpyDtoH_v2);
    return download(destination, source, bytes, nullptr, Until::done);
}

FTCUDA_SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes) {
    FTCUDA_SIM_ENTER(cuMemcpyDtoD_v2);
    return copy_on_device(destination, source, bytes, nullptr, Until::done);
}

FTCUDA_SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, std::size_t bytes,
                                                CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemcpyHtoDAsync_v2);
    return upload(destination, source, bytes, stream, Until::submitted);
}

FTCUDA_SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, std::size_t bytes,
                                                CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemcpyDtoHAsync_v2);
    return download(destination, source, bytes, stream, Until::submitted);
}

FTCUDA_SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes,
                                                CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemcpyDtoDAsync_v2);
    return copy_on_device(destination, source, bytes, stream, Until::submitted);
}

FTCUDA_SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, std::size_t count,
                                           CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemsetD8Async);
    return fill(pointer, value, count, stream);
}

FTCUDA_SIM_EXPORT CUresult cuMemsetD16Async(CUdeviceptr pointer, unsigned short value, std::size_t count,
                                            CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemsetD16Async);
    return fill(pointer, value, count, stream);
}

FTCUDA_SIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned value, std::size_t count, CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemsetD32Async);
    return fill(pointer, value, count, stream);
}

// Without a stream: in the legacy one, and the device may still be at work when they return, as the driver does it.

FTCUDA_SIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr pointer, unsigned char value, std::size_t count) {
    FTCUDA_SIM_ENTER(cuMemsetD8_v2);
    return fill(pointer, value, count, nullptr);
}

FTCUDA_SIM_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr pointer, unsigned short value, std::size_t count) {
    FTCUDA_SIM_ENTER(cuMemsetD16_v2);
    return fill(pointer, value, count, nullptr);
}

FTCUDA_SIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr pointer, unsigned value, std::size_t count) {
    FTCUDA_SIM_ENTER(cuMemsetD32_v2);
    return fill(pointer, value, count, nullptr);
}

}  // namespace ftcuda::sim
