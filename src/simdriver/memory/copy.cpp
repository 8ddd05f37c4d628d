// Exports: copies and fills.
#include "../calls/gate.hpp"
#include "../checkers/races.hpp"
#include "../state/allocations.hpp"
#include "../timeline/capture_rules.hpp"
#include "../timeline/stream.hpp"
#include "../timeline/timeline.hpp"
#include "memory.hpp"

namespace ftcuda::sim {

namespace {

// Whether [address, address + bytes) is plain host memory or lies in an allocation that is in use.
bool may_touch(std::uint64_t address, std::size_t bytes) {
    return allocation_at(address) == nullptr || find_allocation(address, bytes) != nullptr;
}

// Where the simulator touches [address, address + bytes) when it does the work: in an allocation, though what was in
// use at the submission may not be now, or plain host memory. Null when the range begins in an allocation and does not
// end in it.
std::byte* resolve(std::uint64_t address, std::size_t bytes, const Allocation*& allocation) {
    allocation = allocation_at(address);
    if (allocation == nullptr) return reinterpret_cast<std::byte*>(address);
    const std::uint64_t offset = address - allocation->begin;
    return bytes <= allocation->size - offset ? allocation->bytes + offset : nullptr;
}

// Units are touched with relaxed atomics, as kernels do (ptx/memory.cpp): work in streams without order between them is
// a race on the device, which checkers/races.cpp reports if it is asked to, and none between the host's threads.
template <class Unit>
void store(std::byte* to, Unit value) noexcept {
    __atomic_store_n(reinterpret_cast<Unit*>(to), value, __ATOMIC_RELAXED);
}

template <class Unit>
void copy_units(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += sizeof(Unit)) {
        store(to + at, __atomic_load_n(reinterpret_cast<const Unit*>(from + at), __ATOMIC_RELAXED));
    }
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    using Word = std::uint64_t;
    const bool aligned =
        (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % sizeof(Word) == 0;
    const std::size_t words = aligned ? bytes / sizeof(Word) * sizeof(Word) : 0;
    copy_units<Word>(to, from, words);
    copy_units<unsigned char>(to + words, from + words, bytes - words);
}

template <class Unit>
CUresult fill(CUdeviceptr pointer, Unit value, std::size_t count, CUstream handle) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (pointer % sizeof(Unit) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) return CUDA_SUCCESS;
    if (find_allocation(pointer, count * sizeof(Unit)) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    work.what = "a fill";
    begin_touch(pointer, work.touches);
    work.run = [pointer, value, count]() -> CUresult {
        Guard inner(driver_state().mutex);
        const Allocation* allocation = nullptr;
        std::byte* const bytes = resolve(pointer, count * sizeof(Unit), allocation);
        inner.unlock();
        if (allocation == nullptr || bytes == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
        races::touch(pointer, count * sizeof(Unit), ptx::Access::write);
        for (std::size_t index = 0; index < count; ++index) store(bytes + index * sizeof(Unit), value);
        return CUDA_SUCCESS;
    };
    submit(*stream, std::move(work));
    return CUDA_SUCCESS;
}

// The calls without a stream use the legacy one, and return when the copy is done.
enum class Until : unsigned char { submitted, done };

CUresult copy(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream handle, Until until) {
    Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (until == Until::done) {
        if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    }
    if (bytes == 0) return CUDA_SUCCESS;
    if (!may_touch(destination, bytes) || !may_touch(source, bytes)) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    work.what = "a copy";
    begin_touch(destination, work.touches);
    begin_touch(source, work.touches);
    // From pageable memory the source is read before the call returns; to pageable memory the call returns after the
    // copy.
    std::shared_ptr<std::vector<std::byte>> staged;
    if (allocation_at(source) == nullptr) {
        const std::byte* const bytes_of_source = reinterpret_cast<const std::byte*>(source);
        staged = std::make_shared<std::vector<std::byte>>(bytes_of_source, bytes_of_source + bytes);
    }
    work.run = [destination, source, bytes, staged]() -> CUresult {
        Guard inner(driver_state().mutex);
        const Allocation* ignored = nullptr;
        std::byte* const target = resolve(destination, bytes, ignored);
        const std::byte* const origin = staged ? staged->data() : resolve(source, bytes, ignored);
        inner.unlock();
        if (target == nullptr || origin == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
        races::touch(destination, bytes, ptx::Access::write);
        if (!staged) races::touch(source, bytes, ptx::Access::read);
        copy_bytes(target, origin, bytes);
        return CUDA_SUCCESS;
    };
    const bool is_pageable = allocation_at(destination) == nullptr;
    const Point point = submit(*stream, std::move(work));
    return is_pageable || until == Until::done ? wait_for(lock, *stream->context, point) : CUDA_SUCCESS;
}

// From or to an address that must be the device's.
bool is_of_device(CUdeviceptr pointer) {
    const Guard lock(driver_state().mutex);
    return allocation_at(pointer) != nullptr;
}

CUdeviceptr address_of(const void* host) noexcept { return reinterpret_cast<std::uintptr_t>(host); }

CUresult upload(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream, Until until) {
    if (bytes != 0 && !is_of_device(destination)) return CUDA_ERROR_INVALID_VALUE;
    return copy(destination, address_of(source), bytes, stream, until);
}

CUresult download(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream, Until until) {
    if (bytes != 0 && !is_of_device(source)) return CUDA_ERROR_INVALID_VALUE;
    return copy(address_of(destination), source, bytes, stream, until);
}

CUresult copy_on_device(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream stream, Until until) {
    if (bytes != 0 && (!is_of_device(destination) || !is_of_device(source))) return CUDA_ERROR_INVALID_VALUE;
    return copy(destination, source, bytes, stream, until);
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes,
                                         CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemcpyAsync);
    return copy(destination, source, bytes, stream, Until::submitted);
}

FTCUDA_SIM_EXPORT CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes) {
    FTCUDA_SIM_ENTER(cuMemcpy);
    return copy(destination, source, bytes, nullptr, Until::done);
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
