#include "transfer.hpp"

#include "../checkers/late_use.hpp"
#include "../checkers/races.hpp"
#include "../state/allocations.hpp"
#include "memory.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::sim {

namespace {

// Rows of bytes in planes, at one side of a copy.
struct Side {
    std::uint64_t address = 0;
    std::size_t row = 0;    // from the begin of one to the next
    std::size_t plane = 0;  // the same
};

Side side_of(int type, const void* host, CUdeviceptr device, std::size_t x, std::size_t y, std::size_t z,
             std::size_t pitch, std::size_t height, const CUDA_MEMCPY3D& shape) {
    const std::uint64_t base = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(host) : device;
    const std::size_t row = pitch != 0 ? pitch : x + shape.WidthInBytes;
    const std::size_t plane = row * (height != 0 ? height : y + shape.Height);
    return {base + z * plane + y * row + x, row, plane};
}

Side source_of(const CUDA_MEMCPY3D& shape) {
    return side_of(shape.srcMemoryType, shape.srcHost, shape.srcDevice, shape.srcXInBytes, shape.srcY, shape.srcZ,
                   shape.srcPitch, shape.srcHeight, shape);
}

Side destination_of(const CUDA_MEMCPY3D& shape) {
    return side_of(shape.dstMemoryType, shape.dstHost, shape.dstDevice, shape.dstXInBytes, shape.dstY, shape.dstZ,
                   shape.dstPitch, shape.dstHeight, shape);
}

int kind_at(std::uint64_t address) {
    const Allocation* const allocation = allocation_at(address);
    return allocation != nullptr ? static_cast<int>(allocation->kind) : pageable;
}

// Pinned or not, the host's memory is the same to a copy.
int side_of_bus(int kind) noexcept {
    const bool is_host = kind == static_cast<int>(Kind::pinned) || kind == static_cast<int>(Kind::registered);
    return is_host ? pageable : kind;
}

std::size_t extent(const Side& side, const CUDA_MEMCPY3D& shape) {
    return (shape.Depth - 1) * side.plane + (shape.Height - 1) * side.row + shape.WidthInBytes;
}

// Whether [address, address + bytes) is plain host memory or lies in an allocation that is in use.
bool may_touch(std::uint64_t address, std::size_t bytes) {
    return allocation_at(address) == nullptr || find_allocation(address, bytes) != nullptr;
}

// Where the simulator touches [address, address + bytes) when it does the work: in an allocation, though what was in
// use at the submission may not be now, or plain host memory. Null when the range begins in an allocation and does not
// end in it, or in a graph's memory that is not allocated now.
std::byte* resolve(std::uint64_t address, std::size_t bytes, const Allocation*& allocation) {
    allocation = allocation_at(address);
    if (allocation == nullptr) return reinterpret_cast<std::byte*>(address);
    if (allocation->of_graph && allocation->reachable == 0) return nullptr;
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

void fill_row(std::byte* bytes, const CUDA_MEMSET_NODE_PARAMS& shape) noexcept {
    for (std::size_t index = 0; index < shape.width; ++index) {
        std::byte* const at = bytes + index * shape.elementSize;
        switch (shape.elementSize) {
        case 1: store(at, static_cast<unsigned char>(shape.value)); break;
        case 2: store(at, static_cast<unsigned short>(shape.value)); break;
        default: store(at, shape.value); break;
        }
    }
}

std::size_t extent(const CUDA_MEMSET_NODE_PARAMS& shape) {
    return (shape.height - 1) * shape.pitch + shape.width * shape.elementSize;
}

// visit(where it starts in the source, and in the destination)
template <class Visit>
void for_each_row(const CUDA_MEMCPY3D& shape, const Side& source, const Side& destination, Visit visit) {
    for (std::size_t plane = 0; plane < shape.Depth; ++plane) {
        for (std::size_t row = 0; row < shape.Height; ++row) {
            visit(plane * source.plane + row * source.row, plane * destination.plane + row * destination.row);
        }
    }
}

CUresult run(const CUDA_MEMCPY3D& shape, const std::vector<std::byte>* staged) {
    const Side source = source_of(shape);
    const Side destination = destination_of(shape);
    Guard inner(driver_state().mutex);
    const Allocation* ignored = nullptr;
    std::byte* const to = resolve(destination.address, extent(destination, shape), ignored);
    const std::byte* const from =
        staged != nullptr ? staged->data() : resolve(source.address, extent(source, shape), ignored);
    inner.unlock();
    if (to == nullptr || from == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for_each_row(shape, source, destination, [&](std::size_t at_source, std::size_t at_destination) {
        races::touch(destination.address + at_destination, shape.WidthInBytes, ptx::Access::write);
        if (staged == nullptr) races::touch(source.address + at_source, shape.WidthInBytes, ptx::Access::read);
        copy_bytes(to + at_destination, from + at_source, shape.WidthInBytes);
    });
    return CUDA_SUCCESS;
}

CUresult run(const CUDA_MEMSET_NODE_PARAMS& shape) {
    Guard inner(driver_state().mutex);
    const Allocation* allocation = nullptr;
    std::byte* const bytes = resolve(shape.dst, extent(shape), allocation);
    inner.unlock();
    if (allocation == nullptr || bytes == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (std::size_t row = 0; row < shape.height; ++row) {
        races::touch(shape.dst + row * shape.pitch, shape.width * shape.elementSize, ptx::Access::write);
        fill_row(bytes + row * shape.pitch, shape);
    }
    return CUDA_SUCCESS;
}

}  // namespace

CopyOperation as_copy(const CUDA_MEMCPY3D& shape) {
    return {shape, kind_at(source_of(shape).address), kind_at(destination_of(shape).address)};
}

CopyOperation linear_copy(const End& destination, const End& source, std::size_t bytes) {
    CUDA_MEMCPY3D shape{};
    shape.srcMemoryType = source.type;
    shape.dstMemoryType = destination.type;
    if (source.type == CU_MEMORYTYPE_HOST) {
        shape.srcHost = reinterpret_cast<const void*>(source.address);
    } else {
        shape.srcDevice = source.address;
    }
    if (destination.type == CU_MEMORYTYPE_HOST) {
        shape.dstHost = reinterpret_cast<void*>(destination.address);
    } else {
        shape.dstDevice = destination.address;
    }
    shape.WidthInBytes = bytes;
    shape.Height = shape.Depth = 1;
    return as_copy(shape);
}

FillOperation linear_fill(CUdeviceptr pointer, unsigned value, unsigned element_size, std::size_t count) {
    return {{pointer, 0, value, element_size, count, 1}};
}

CUresult check(const CopyOperation& operation) {
    const CUDA_MEMCPY3D& shape = operation.shape;
    for (const int type : {shape.srcMemoryType, shape.dstMemoryType}) {
        if (type == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
        if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (shape.WidthInBytes == 0 || shape.Height == 0 || shape.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
    const Side source = source_of(shape);
    const Side destination = destination_of(shape);
    const bool overlaps = shape.Height > 1 && (source.row < shape.WidthInBytes || destination.row < shape.WidthInBytes);
    const bool missing = (shape.srcMemoryType == CU_MEMORYTYPE_DEVICE && allocation_at(source.address) == nullptr) ||
                         (shape.dstMemoryType == CU_MEMORYTYPE_DEVICE && allocation_at(destination.address) == nullptr);
    if (overlaps || missing || !may_touch(source.address, extent(source, shape)) ||
        !may_touch(destination.address, extent(destination, shape)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult check(const FillOperation& operation) {
    const CUDA_MEMSET_NODE_PARAMS& shape = operation.shape;
    if (shape.elementSize != 1 && shape.elementSize != 2 && shape.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
    if (shape.dst % shape.elementSize != 0 || shape.width == 0 || shape.height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (shape.height > 1 && (shape.pitch < shape.width * shape.elementSize || shape.pitch % shape.elementSize != 0))
        return CUDA_ERROR_INVALID_VALUE;
    return find_allocation(shape.dst, extent(shape)) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

std::vector<Use> uses_of(const CopyOperation& operation) {
    std::vector<Use> uses;
    late_use::remember(destination_of(operation.shape).address, uses);
    late_use::remember(source_of(operation.shape).address, uses);
    return uses;
}

std::vector<Use> uses_of(const FillOperation& operation) {
    std::vector<Use> uses;
    late_use::remember(operation.shape.dst, uses);
    return uses;
}

Work prepare(const CopyOperation& operation, Reads reads) {
    const Side source = source_of(operation.shape);
    Work work;
    work.what = "a copy";
    begin_touch(destination_of(operation.shape).address, work.touches);
    begin_touch(source.address, work.touches);
    std::shared_ptr<std::vector<std::byte>> staged;
    if (reads == Reads::when_prepared && allocation_at(source.address) == nullptr) {
        const std::byte* const bytes = reinterpret_cast<const std::byte*>(source.address);
        staged = std::make_shared<std::vector<std::byte>>(bytes, bytes + extent(source, operation.shape));
    }
    work.run = [shape = operation.shape, staged] { return run(shape, staged.get()); };
    return work;
}

Work prepare(const FillOperation& operation) {
    Work work;
    work.what = "a fill";
    begin_touch(operation.shape.dst, work.touches);
    work.run = [shape = operation.shape] { return run(shape); };
    return work;
}

bool are_alike(const CopyOperation& a, const CopyOperation& b) {
    for (const CUDA_MEMCPY3D* const shape : {&a.shape, &b.shape}) {
        if (shape->Height != 1 || shape->Depth != 1) return false;
    }
    return side_of_bus(a.source) == side_of_bus(b.source) && side_of_bus(a.destination) == side_of_bus(b.destination);
}

bool is_to_pageable(const CopyOperation& operation) { return operation.destination == pageable; }

}  // namespace ftcuda::sim
