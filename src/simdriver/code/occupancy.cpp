// Exports: occupancy.
#include "occupancy.hpp"

#include "../calls/gate.hpp"
#include "../state/profile.hpp"
#include "library.hpp"
#include "module.hpp"

#include <algorithm>

namespace ftcuda::sim {

namespace {

constexpr int threads_per_multiprocessor = 2048;
constexpr int blocks_per_multiprocessor = 32;
constexpr int shared_per_multiprocessor = 100 * 1024;
constexpr int registers_per_multiprocessor = 65536;

}  // namespace

int blocks_that_fit(const Function& function, int block_size, std::size_t dynamic_shared) {
    const ptx::Entry& entry = entry_of(function);
    if (block_size <= 0 || block_size > static_cast<int>(entry.max_threads)) return 0;
    int blocks = std::min(blocks_per_multiprocessor, threads_per_multiprocessor / ((block_size + 31) / 32 * 32));
    const std::size_t shared =
        entry.static_shared_bytes + dynamic_shared + 1024;  // 1 KiB of each block is the system's
    blocks = std::min(blocks, static_cast<int>(shared_per_multiprocessor / shared));
    const int registers = static_cast<int>(std::max(entry.registers, 16u)) * ((block_size + 31) / 32 * 32);
    return std::min(blocks, registers_per_multiprocessor / std::max(registers, 1));
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int block_size,
                                                                       std::size_t shared_bytes) {
    FTCUDA_SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = blocks_that_fit(*function, block_size, shared_bytes);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                                                int block_size,
                                                                                std::size_t shared_bytes,
                                                                                unsigned flags) {
    FTCUDA_SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;  // 1: without the caching that would lower it, of which there is none
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle, block_size, shared_bytes);
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int* min_grid, int* block, CUfunction handle,
                                                            CUoccupancyB2DSize shared_for_block,
                                                            std::size_t shared_bytes, int block_limit) {
    FTCUDA_SIM_ENTER(cuOccupancyMaxPotentialBlockSize);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    const int limit = static_cast<int>(entry_of(*function).max_threads);
    int best_threads = 0;
    for (int size = block_limit > 0 ? std::min(block_limit, limit) : limit; size > 0; size = (size - 1) / 32 * 32) {
        const int blocks =
            blocks_that_fit(*function, size, shared_for_block != nullptr ? shared_for_block(size) : shared_bytes);
        if (blocks * size <= best_threads) continue;
        best_threads = blocks * size;
        *block = size;
        device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, *min_grid);
        *min_grid *= blocks;
    }
    return best_threads != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FTCUDA_SIM_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction handle, int blocks,
                                                                   int block_size) {
    FTCUDA_SIM_ENTER(cuOccupancyAvailableDynamicSMemPerBlock);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Function> function;
    if (const CUresult result = find_function(handle, function); result != CUDA_SUCCESS) return result;
    if (blocks <= 0 || block_size <= 0 || blocks_that_fit(*function, block_size, 0) < blocks)
        return CUDA_ERROR_INVALID_VALUE;
    const std::size_t share =
        static_cast<std::size_t>(shared_per_multiprocessor / blocks) - 1024 - entry_of(*function).static_shared_bytes;
    *bytes = std::min(share, static_cast<std::size_t>(*function->effective().max_dynamic_shared));
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
