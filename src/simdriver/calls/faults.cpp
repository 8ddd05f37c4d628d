#include "faults.hpp"

#include <array>
#include <atomic>
#include <cstring>

namespace ftcuda::sim {

namespace {

struct Planned : Fault {
    std::uint64_t hits = 0;
    std::uint64_t waiting = 0;
};

// A lock of its own: a call held by a fault must not hold the driver's.
struct Plan {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::uint64_t, Planned> faults;
    std::uint64_t next_id = 1;
    std::atomic<std::size_t> size{0};  // so that calls without any plan take no lock
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Call::count)> calls{};
};

Plan& plan() noexcept {
    static Plan& only = *new Plan;
    return only;
}

// The fault that holds the calling thread's present call after its effect; 0: none.
thread_local std::uint64_t held_after = 0;
thread_local bool is_left_out = false;

void wait_for_release(Plan& p, Guard& lock, std::uint64_t id) {
    ++p.faults.at(id).waiting;
    p.changed.notify_all();
    while (p.faults.count(id) != 0) p.changed.wait(lock);
}

// Whether this call of the calling thread is the one that the fault is planned for.
bool is_due(Planned& fault, Call call) {
    if (fault.entry != describe(call).symbol || (fault.thread != 0 && fault.thread != this_thread())) return false;
    if (fault.nth == 0 || --fault.nth != 0) return false;
    ++fault.hits;
    return true;
}

void poison_current(CUresult value) {
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Context> context = driver_state().context_handles.find(current_context);
    if (context && context->failure == CUDA_SUCCESS) context->failure = value;
    driver_state().progress.notify_all();
}

}  // namespace

void leave_out_thread() noexcept { is_left_out = true; }

bool apply_faults(Call call, CUresult& result) {
    if (is_left_out) return false;
    Plan& p = plan();
    p.calls[static_cast<std::size_t>(call)].fetch_add(1, std::memory_order_relaxed);
    if (p.size.load(std::memory_order_acquire) == 0) return false;
    Guard lock(p.mutex);
    for (auto& [id, fault] : p.faults) {  // beside whatever else is planned for the same call
        if (fault.action == FaultAction::hold_after && is_due(fault, call)) held_after = id;
    }
    for (auto& [id, fault] : p.faults) {
        if (fault.action == FaultAction::hold_after || !is_due(fault, call)) continue;
        result = fault.value;
        if (fault.action == FaultAction::hold) {
            wait_for_release(p, lock, std::uint64_t{id});
            return false;
        }
        const bool poisons = fault.action == FaultAction::poison;
        lock.unlock();
        if (poisons) poison_current(result);
        return true;
    }
    return false;
}

void leave_call() noexcept {
    const std::uint64_t id = held_after;
    if (id == 0) return;
    held_after = 0;
    Plan& p = plan();
    Guard lock(p.mutex);
    if (p.faults.count(id) != 0) wait_for_release(p, lock, id);
}

std::uint64_t calls_of(const char* symbol) {
    std::uint64_t total = 0;
    for (unsigned index = 0; index < static_cast<unsigned>(Call::count); ++index) {
        if (symbol != nullptr && std::strcmp(symbol, describe(static_cast<Call>(index)).symbol) != 0) continue;
        total += plan().calls[index].load(std::memory_order_relaxed);
    }
    return total;
}

const char* name_of(std::uint64_t index) {
    return index < static_cast<std::uint64_t>(Call::count) ? describe(static_cast<Call>(index)).symbol : nullptr;
}

std::uint64_t add_fault(Fault fault) {
    Plan& p = plan();
    const Guard lock(p.mutex);
    const std::uint64_t id = p.next_id++;
    p.faults.emplace(id, Planned{std::move(fault)});
    p.size.store(p.faults.size(), std::memory_order_release);
    return id;
}

void release_fault(std::uint64_t id) {
    Plan& p = plan();
    const Guard lock(p.mutex);
    p.faults.erase(id);
    p.size.store(p.faults.size(), std::memory_order_release);
    p.changed.notify_all();
}

std::uint64_t fault_hits(std::uint64_t id) {
    const Guard lock(plan().mutex);
    const auto found = plan().faults.find(id);
    return found == plan().faults.end() ? 0 : found->second.hits;
}

std::uint64_t fault_waiting(std::uint64_t id) {
    const Guard lock(plan().mutex);
    const auto found = plan().faults.find(id);
    return found == plan().faults.end() ? 0 : found->second.waiting;
}

void clear_faults() {
    Plan& p = plan();
    const Guard lock(p.mutex);
    p.faults.clear();
    p.size.store(0, std::memory_order_release);
    p.changed.notify_all();
}

}  // namespace ftcuda::sim
