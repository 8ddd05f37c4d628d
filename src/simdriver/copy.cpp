// Exports: copies and fills.
#include "gate.hpp"
#include "races.hpp"

#include <cstring>

namespace ftcuda::sim {

namespace {

// Where the simulator may touch [address, address + bytes): in an allocation, or plain host memory. Null when the range begins
// in an allocation and does not end in it.
std::byte* resolve(std::uint64_t address, std::size_t bytes, const Allocation*& allocation) {
    allocation = find_allocation(address, 1);
    if (allocation == nullptr) return reinterpret_cast<std::byte*>(address);
    if (find_allocation(address, bytes) == nullptr) return nullptr;
    return allocation->bytes + (address - allocation->begin);
}

template <class Unit>
CUresult fill(CUdeviceptr pointer, Unit value, std::size_t count, CUstream handle) {
    const Guard lock(world().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (pointer % sizeof(Unit) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) return CUDA_SUCCESS;
    if (find_allocation(pointer, count * sizeof(Unit)) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    work.what = "a fill";
    begin_touch(pointer, work.touches);
    work.run = [pointer, value, count]() -> CUresult {
        Guard inner(world().mutex);
        const Allocation* allocation = nullptr;
        std::byte* const bytes = resolve(pointer, count * sizeof(Unit), allocation);
        inner.unlock();
        if (allocation == nullptr || bytes == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
        races::touch(pointer, count * sizeof(Unit), ptx::Access::write);
        for (std::size_t index = 0; index < count; ++index) std::memcpy(bytes + index * sizeof(Unit), &value, sizeof value);
        return CUDA_SUCCESS;
    };
    submit(*stream, std::move(work));
    return CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes, CUstream handle) {
    FTCUDA_SIM_ENTER(cuMemcpyAsync);
    Guard lock(world().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (bytes == 0) return CUDA_SUCCESS;
    const Allocation* to = nullptr;
    const Allocation* from = nullptr;
    if (resolve(destination, bytes, to) == nullptr || resolve(source, bytes, from) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    work.what = "a copy";
    begin_touch(destination, work.touches);
    begin_touch(source, work.touches);
    // From pageable memory the source is read before the call returns; to pageable memory the call returns after the copy.
    std::shared_ptr<std::vector<std::byte>> staged;
    if (from == nullptr) {
        const std::byte* const bytes_of_source = reinterpret_cast<const std::byte*>(source);
        staged = std::make_shared<std::vector<std::byte>>(bytes_of_source, bytes_of_source + bytes);
    }
    work.run = [destination, source, bytes, staged]() -> CUresult {
        Guard inner(world().mutex);
        const Allocation* ignored = nullptr;
        std::byte* const target = resolve(destination, bytes, ignored);
        const std::byte* const origin = staged ? staged->data() : resolve(source, bytes, ignored);
        inner.unlock();
        if (target == nullptr || origin == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
        races::touch(destination, bytes, ptx::Access::write);
        if (!staged) races::touch(source, bytes, ptx::Access::read);
        std::memmove(target, origin, bytes);
        return CUDA_SUCCESS;
    };
    const Point point = submit(*stream, std::move(work));
    return to == nullptr ? wait_for(lock, *stream->context, point) : CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, std::size_t count, CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemsetD8Async);
    return fill(pointer, value, count, stream);
}

FTCUDA_SIM_EXPORT CUresult cuMemsetD16Async(CUdeviceptr pointer, unsigned short value, std::size_t count, CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemsetD16Async);
    return fill(pointer, value, count, stream);
}

FTCUDA_SIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned value, std::size_t count, CUstream stream) {
    FTCUDA_SIM_ENTER(cuMemsetD32Async);
    return fill(pointer, value, count, stream);
}

}  // namespace ftcuda::sim
