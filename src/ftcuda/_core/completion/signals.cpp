#include "signals.hpp"

#include "../../_driver/schedule.hpp"
#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"

#include <memory>
#include <new>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

Signals& Signals::of(Context& context) {
    Signals* signals = context.signals_.load(std::memory_order_acquire);
    if (signals != nullptr) return *signals;
    auto mine = std::make_unique<Signals>(context);
    FTCUDA_SCHEDULE_POINT("publish the signals");
    if (context.signals_.compare_exchange_strong(signals, mine.get(), std::memory_order_acq_rel,
                                                 std::memory_order_acquire)) {
        signals = mine.release();  // kept for as long as the context, which is for ever
    }
    return *signals;
}

bool Signals::are_there() const noexcept { return context_.device().has_stream_values(); }

Status Signals::acquire(Signal& signal) {
    for (;;) {
        {
            const Lock lock(mutex_);
            if (!idle_.empty()) {
                signal = idle_.back();
                idle_.pop_back();
                return {};
            }
        }
        if (const Status status = make_page(); !status.ok()) return status;
    }
}

Status Signals::make_page() {
    void* memory = nullptr;
    {
        const RelaxedCapture relaxed;
        const Status status = context_.observe(
            cu.cuMemHostAlloc(&memory, words_of_page * sizeof(Signal::Word), CU_MEMHOSTALLOC_PORTABLE));
        if (!status.ok()) return status;
    }
    const Lock lock(mutex_);
    made_ += words_of_page;
    idle_.reserve(made_);  // release() needs no memory
    for (std::size_t index = 0; index < words_of_page; ++index)
        idle_.push_back({new (static_cast<Signal::Word*>(memory) + index) Signal::Word, 1});
    return {};
}

void Signals::release(Signal signal) {
    ++signal.value;
    const Lock lock(mutex_);
    idle_.push_back(signal);
}

Status Signals::acquire_stream(CUstream& stream) {
    {
        const Lock lock(mutex_);
        idle_streams_.reserve(idle_streams_limit);
        if (!idle_streams_.empty()) {
            stream = idle_streams_.back();
            idle_streams_.pop_back();
            return {};
        }
    }
    const RelaxedCapture relaxed;
    return context_.observe(cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
}

void Signals::release_stream(CUstream stream) {
    {
        const Lock lock(mutex_);
        if (idle_streams_.size() < idle_streams_limit) {
            idle_streams_.push_back(stream);
            return;
        }
    }
    destroy_stream(stream);
}

void Signals::destroy_stream(CUstream stream) {
    const RelaxedCapture relaxed;
    if (context_.may_destroy())
        deferred_errors::add(context_.observe(cu.cuStreamDestroy_v2(stream)), "destroy", "stream");
}

}  // namespace ftcuda::core
