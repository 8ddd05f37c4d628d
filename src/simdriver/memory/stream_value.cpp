// Exports: words that streams write, for the host or for other streams to look at.
#include "../calls/gate.hpp"
#include "../checkers/early_free.hpp"
#include "../checkers/races.hpp"
#include "../state/allocations.hpp"
#include "../timeline/recording.hpp"
#include "../timeline/stream.hpp"
#include "../timeline/timeline.hpp"
#include "memory.hpp"

namespace ftcuda::sim {

namespace {

// A word that is to be written. Whoever sees it may free its memory, and submit what comes after it, at once: to the
// oracles all of that has happened when the word is there.
struct WrittenWord {
    std::uint64_t address = 0;
    std::uint32_t value = 0;
    Point point;
    std::vector<std::uint64_t> touches;
};

CUresult write(WrittenWord& word) {
    races::touch(word.address, sizeof word.value, ptx::Access::write);
    const Guard inner(driver_state().mutex);
    const Allocation* const allocation = find_allocation(word.address, sizeof word.value);
    if (allocation == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
    // Who sees the word sees all that was done before it in the stream.
    if (allocation->kind != Kind::device) races::host_saw(word.point);
    early_free::end(word.touches);
    word.touches.clear();
    auto* const to = reinterpret_cast<std::uint32_t*>(allocation->bytes + (word.address - allocation->begin));
    __atomic_store_n(to, word.value, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

// Also of what was not run, in a context that has failed.
void forget(WrittenWord& word) {
    const Guard inner(driver_state().mutex);
    early_free::end(word.touches);
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr address, std::uint32_t value,
                                                   unsigned flags) {
    FTCUDA_SIM_ENTER(cuStreamWriteValue32_v2);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    // Without a memory barrier: only the first version of the entry has that.
    if (flags != CU_STREAM_WRITE_VALUE_DEFAULT || address % sizeof value != 0) return CUDA_ERROR_INVALID_VALUE;
    if (find_allocation(address, sizeof value) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture) return CUDA_ERROR_NOT_SUPPORTED;
    const auto word = std::make_shared<WrittenWord>();
    word->address = address;
    word->value = value;
    begin_touch(address, word->touches);
    Work work;
    work.what = "a written value";
    work.run = [word] { return write(*word); };
    work.let_go = [word] { forget(*word); };
    word->point = submit(*stream, std::move(work));
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
