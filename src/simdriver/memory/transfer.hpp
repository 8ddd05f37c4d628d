// Copies and fills, by streams and by graphs. Under the lock.
#pragma once

#include "../state/driver_state.hpp"
#include "../state/operation.hpp"

namespace ftcuda::sim {

CopyOperation as_copy(const CUDA_MEMCPY3D& shape);

// One row. The types, CU_MEMORYTYPE_*, are what the call says of the memory.
struct End {
    CUdeviceptr address = 0;
    int type = CU_MEMORYTYPE_UNIFIED;
};
CopyOperation linear_copy(const End& destination, const End& source, std::size_t bytes);
FillOperation linear_fill(CUdeviceptr pointer, unsigned value, unsigned element_size, std::size_t count);

// Success, or the driver's error.
CUresult check(const CopyOperation& operation);
CUresult check(const FillOperation& operation);

// What they name.
std::vector<Use> uses_of(const CopyOperation& operation);
std::vector<Use> uses_of(const FillOperation& operation);

// Where pageable memory is the source: when a copy reads it.
enum class Reads : unsigned char { when_prepared, when_run };

Work prepare(const CopyOperation& operation, Reads reads);
Work prepare(const FillOperation& operation);

// Whether both have one row, from the host's memory, the device's or managed memory as the other, and to it.
bool are_alike(const CopyOperation& a, const CopyOperation& b);

// Whether the copy ends in plain host memory.
bool is_to_pageable(const CopyOperation& operation);

}  // namespace ftcuda::sim
