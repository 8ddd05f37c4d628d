#include "context_wait.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../sync/limit.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

// Seconds that a wait for a device takes at least before it gives up: a thread must wake to say that nothing runs.
constexpr double shortest_wait = 0.01;

// Whether the driver answers, to a thread that a test schedules, what it has no question for.
bool can_ask() noexcept {
    CUresult answer = CUDA_SUCCESS;
    return driver::clock::ask_context(answer);
}

Status wait_scheduled(const Limit& limit) noexcept {
    return wait_until_ready(limit, false, [] {
        CUresult answer = CUDA_SUCCESS;
        return driver::clock::ask_context(answer) ? Status::from_driver(answer, Entry::cuCtxSynchronize)
                                                  : cu.cuCtxSynchronize();  // the schedule is over
    });
}

}  // namespace

void retire(Context& context, std::function<void()> finish) { ContextWait::of(context).retire(std::move(finish)); }

Status synchronize(Context& context, const Limit& limit) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    return ContextWait::of(context).synchronize(limit);
}

Status synchronize(Context& context) { return synchronize(context, Limit()); }

ContextWait& ContextWait::of(Context& context) {
    ContextWait* wait = context.wait_.load(std::memory_order_acquire);
    if (wait != nullptr) return *wait;
    auto mine = std::make_unique<ContextWait>(context);
    FTCUDA_SCHEDULE_POINT("publish the context's wait");
    if (context.wait_.compare_exchange_strong(wait, mine.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
        wait = mine.release();  // kept for as long as the context, which is for ever
    }
    return *wait;
}

void ContextWait::retire(std::function<void()> finish) {
    const Lock lock(retired_mutex_);
    retired_.push_back(std::move(finish));
}

Status ContextWait::synchronize(const Limit& limit) {
    if (context_.has_captures()) return Reason::capturing;
    const bool is_scheduled = !limit.is_none() && can_ask();
    const bool is_asked = !limit.is_none() && !is_scheduled;
    if (is_asked) start();  // may throw, and so comes first
    // Taken before the wait: what is retired during it may belong to work that the wait does not cover.
    std::vector<std::function<void()>> idle;
    {
        const Lock lock(retired_mutex_);
        idle.swap(retired_);
    }
    Status status;
    if (is_asked) {
        const std::uint64_t number = ask();
        const Limit patient{std::max(limit.seconds, shortest_wait), limit.is_interrupted};
        status = wait_until_ready(patient, false, [&] { return answer(number); });
    } else {
        status = context_.observe(is_scheduled ? wait_scheduled(limit) : cu.cuCtxSynchronize());
    }
    if (!status.ok()) {
        const Lock lock(retired_mutex_);
        for (auto& finish : idle) retired_.push_back(std::move(finish));
        return status;
    }
    const RelaxedCapture relaxed;
    for (const auto& finish : idle) finish();
    return {};
}

std::uint64_t ContextWait::ask() noexcept {
    std::uint64_t number = 0;
    {
        const Lock lock(asked_mutex_);
        number = ++asked_;
    }
    wake();
    return number;
}

Status ContextWait::answer(std::uint64_t number) noexcept {
    if (over_.load(std::memory_order_acquire) < number)
        return Status::from_driver(CUDA_ERROR_NOT_READY, Entry::cuCtxSynchronize);
    const Lock lock(asked_mutex_);
    return outcome_;
}

Service::Pause ContextWait::turn() noexcept {
    std::uint64_t number = 0;
    {
        const Lock lock(asked_mutex_);
        number = asked_;  // before the wait, which covers what was submitted before they asked
    }
    Status status;
    {
        const ContextScope scope(context_);
        status = scope.status();
        if (status.ok())
            status = context_.has_captures() ? Status(Reason::capturing) : context_.observe(cu.cuCtxSynchronize());
    }
    const Lock lock(asked_mutex_);
    outcome_ = status;
    over_.store(number, std::memory_order_release);
    return for_ever;
}

}  // namespace ftcuda::core
