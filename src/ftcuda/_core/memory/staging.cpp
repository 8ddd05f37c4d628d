#include "staging.hpp"

#include "../../_driver/schedule.hpp"
#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"

#include <memory>
#include <utility>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

Staging& Staging::of(Context& context) {
    Staging* staging = context.staging_.load(std::memory_order_acquire);
    if (staging != nullptr) return *staging;
    auto mine = std::make_unique<Staging>(context);
    FTCUDA_SCHEDULE_POINT("publish the staging memory");
    if (context.staging_.compare_exchange_strong(staging, mine.get(), std::memory_order_acq_rel,
                                                 std::memory_order_acquire)) {
        staging = mine.release();  // kept for as long as the context, which is for ever
    }
    return *staging;
}

Status Staging::acquire(Chunk& chunk) {
    bool full = false;
    chunk = {};
    {
        const Lock lock(mutex_);
        full = made_ >= limit;
        if (!idle_.empty()) {
            chunk = idle_.front();
            idle_.pop_front();
        }
    }
    if (chunk.memory == nullptr) return make(chunk);
    if (!full && chunk.event != nullptr && !context_.is_reached(chunk.event)) {
        {
            const Lock lock(mutex_);
            idle_.push_front(chunk);
        }
        return make(chunk);
    }
    const Status status = wait(chunk);
    if (!status.ok()) release(std::exchange(chunk, {}));
    return status;
}

Status Staging::wait(Chunk& chunk) {
    if (chunk.event == nullptr) return {};
    const RelaxedCapture relaxed;
    const Status status = context_.observe(cu.cuEventSynchronize(chunk.event));
    if (!status.ok()) return status;
    context_.release_event(std::exchange(chunk.event, nullptr));
    return {};
}

Status Staging::make(Chunk& chunk) {
    chunk = {};
    const RelaxedCapture relaxed;
    const Status status = context_.observe(cu.cuMemHostAlloc(&chunk.memory, chunk_bytes, CU_MEMHOSTALLOC_PORTABLE));
    if (!status.ok()) return status;
    const Lock lock(mutex_);
    ++made_;
    return {};
}

Status Staging::trim() {
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    std::deque<Chunk> idle;
    {
        const Lock lock(mutex_);
        idle.swap(idle_);
    }
    Status status;
    for (Chunk& chunk : idle) {
        if (!status.ok() || (chunk.event != nullptr && !context_.is_reached(chunk.event))) {
            release(chunk);
            continue;
        }
        if (chunk.event != nullptr) context_.release_event(chunk.event);
        status = context_.observe(cu.cuMemFreeHost(chunk.memory));
        const Lock lock(mutex_);
        --made_;
    }
    return status;
}

void Staging::release(Chunk chunk) {
    const Lock lock(mutex_);
    idle_.push_back(chunk);
}

}  // namespace ftcuda::core
