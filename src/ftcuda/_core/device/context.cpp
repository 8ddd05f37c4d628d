#include "context.hpp"

#include "../../_driver/schedule.hpp"
#include "../../_driver/table.hpp"
#include "capture_mode.hpp"
#include "deferred_errors.hpp"
#include "process.hpp"

#include <utility>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

// Events kept for reuse in one context. More are wanted only while that many threads free at the same moment.
constexpr std::size_t idle_events_limit = 64;

std::uint64_t pack(Status status) noexcept {
    return (std::uint64_t{static_cast<std::uint16_t>(status.entry())} << 32) |
           static_cast<std::uint32_t>(status.code());
}

Status unpack_poison(std::uint64_t packed) noexcept {
    return Status(Reason::poisoned, static_cast<Entry>(packed >> 32), static_cast<CUresult>(packed & 0xffff'ffff));
}

}  // namespace

Status Context::usable() const noexcept {
    if (is_forked()) return Reason::forked;
    const std::uint64_t poison = poison_.load(std::memory_order_relaxed);
    return poison == 0 ? Status() : unpack_poison(poison);
}

void Context::remember(Status status) noexcept {
    if (status.reason() != Reason::driver || !driver::is_sticky(status.code())) return;
    std::uint64_t none = 0;  // the first failure is the one to name
    poison_.compare_exchange_strong(none, pack(status), std::memory_order_relaxed);
}

bool Context::may_destroy() const noexcept {
    return process::may_destroy() && poison_.load(std::memory_order_relaxed) == 0;
}

Status Context::acquire_event(CUevent& event) {
    {
        const Lock lock(events_mutex_);
        if (!idle_events_.empty()) {
            event = idle_events_.back();
            idle_events_.pop_back();
            return {};
        }
    }
    return observe(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
}

void Context::release_event(CUevent event) {
    {
        const Lock lock(events_mutex_);
        if (idle_events_.size() < idle_events_limit) {
            idle_events_.push_back(event);
            return;
        }
    }
    destroy_event(event);
}

void Context::destroy_event(CUevent event) noexcept {
    if (may_destroy()) deferred_errors::add(observe(cu.cuEventDestroy_v2(event)), "destroy", "event");
}

Status Context::record(CUstream stream, CUevent& event) {
    if (const Status status = acquire_event(event); !status.ok()) return status;
    const Status status = observe(cu.cuEventRecord(event, stream));
    if (!status.ok()) release_event(std::exchange(event, nullptr));
    return status;
}

Status Context::ask(CUevent event) noexcept {
    const ContextScope scope(*this);
    const RelaxedCapture relaxed;
    Status status = scope.status();
    if (status.ok()) status = cu.cuEventQuery(event);
    if (status.reason() == Reason::driver && !status.is(CUDA_ERROR_NOT_READY) && !is_of_capture(status))
        deferred_errors::add(observe(status), "query", "event");
    return status;
}

Status Context::housekeeping_stream(CUstream& stream) {
    stream = housekeeping_stream_.load(std::memory_order_acquire);
    if (stream != nullptr) return {};
    CUstream mine = nullptr;
    if (const Status status = observe(cu.cuStreamCreateWithPriority(&mine, CU_STREAM_NON_BLOCKING, 0)); !status.ok())
        return status;
    FTCUDA_SCHEDULE_POINT("publish the housekeeping stream");
    if (housekeeping_stream_.compare_exchange_strong(stream, mine, std::memory_order_acq_rel,
                                                     std::memory_order_acquire)) {
        stream = mine;
        return {};
    }
    return observe(cu.cuStreamDestroy_v2(mine));
}

Status Context::memory_info(std::size_t& free, std::size_t& total) {
    const ContextScope scope(*this);
    if (!scope.status().ok()) return scope.status();
    return observe(cu.cuMemGetInfo_v2(&free, &total));
}

Status Context::priority_range(int& least, int& greatest) {
    const ContextScope scope(*this);
    if (!scope.status().ok()) return scope.status();
    return observe(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
}

ContextScope::ContextScope(const Context& context) noexcept : status_(context.usable()) {
    if (!status_.ok()) return;
    process::pass_exit();
    CUcontext current = nullptr;
    status_ = cu.cuCtxGetCurrent(&current);
    if (!status_.ok() || current == context.cu_context()) return;
    status_ = cu.cuCtxSetCurrent(context.cu_context());
    if (status_.ok()) restore_ = current;
}

ContextScope::~ContextScope() {
    if (restore_ != nullptr) deferred_errors::add(cu.cuCtxSetCurrent(restore_), "restore", "current context");
}

}  // namespace ftcuda::core
