// Copies and fills, by streams and by graphs. Under the lock.
#pragma once

#include "../state/driver_state.hpp"
#include "../state/operation.hpp"

namespace ftcuda::sim {

CopyOperation as_copy(const CUDA_MEMCPY3D& shape);
FillOperation as_fill(const CUDA_MEMSET_NODE_PARAMS& shape);

// One row.
CopyOperation linear_copy(CUdeviceptr destination, CUdeviceptr source, std::size_t bytes);
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

// Whether both have one row, and memory of the same kinds.
bool are_alike(const CopyOperation& a, const CopyOperation& b);
bool are_alike(const FillOperation& a, const FillOperation& b);

// Whether the copy ends in plain host memory.
bool is_to_pageable(const CopyOperation& operation);

}  // namespace ftcuda::sim
