#include "context_wait.hpp"

#include "../../_driver/table.hpp"
#include "context.hpp"

#include <thread>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

void ContextWait::start() {
    const Lock lock(mutex_);
    if (started_) return;
    std::thread([this] { run(); }).detach();
    started_ = true;
}

std::uint64_t ContextWait::ask() noexcept {
    const Lock lock(mutex_);
    const std::uint64_t number = ++asked_;
    asked_for_.notify_all();
    return number;
}

Status ContextWait::answer(std::uint64_t number) noexcept {
    if (over_.load(std::memory_order_acquire) < number)
        return Status::from_driver(CUDA_ERROR_NOT_READY, Entry::cuCtxSynchronize);
    const Lock lock(mutex_);
    return outcome_;
}

void ContextWait::run() noexcept {
    std::uint64_t number = 0;
    for (;;) {
        {
            const Lock lock(mutex_);
            while (asked_ == number) asked_for_.wait(mutex_);
            number = asked_;  // before the wait, which covers what was submitted before they asked
        }
        Status status;
        {
            const ContextScope scope(context_);
            status = scope.status();
            if (status.ok()) status = context_.observe(cu.cuCtxSynchronize());
        }
        const Lock lock(mutex_);
        outcome_ = status;
        over_.store(number, std::memory_order_release);
    }
}

}  // namespace ftcuda::core
