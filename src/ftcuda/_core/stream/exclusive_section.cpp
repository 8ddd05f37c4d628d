#include "exclusive_section.hpp"

#include "../../_driver/clock.hpp"
#include "../sync/fork.hpp"
#include "../sync/may_wait.hpp"
#include "held_sections.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace ftcuda::core {

namespace {

// Set once, before the first section; published with release, read with acquire.
std::atomic<const ExclusiveSection::Tasks*> known_tasks{nullptr};

std::atomic<std::uint64_t> threads_inside{0};  // that were in a section so far; relaxed: a counter

}  // namespace

void ExclusiveSection::learn_of_tasks_by(const Tasks& tasks) noexcept {
    known_tasks.store(&tasks, std::memory_order_release);
}

Status ExclusiveSection::begin(const void* holder, std::uint64_t task) {
    if (const Status status = may_wait(); !status.ok()) return status;
    if (stream_.session() != nullptr) return Reason::builders;  // whose turn it is, its session says
    if (is_mine()) {
        if (const Status status = check_task(); !status.ok()) return status;
    }
    const Lock lock(mutex_);
    if (lifetime_.is_closing()) return Reason::closed;
    if (is_mine()) {
        levels_.push_back({holder, task});
        return {};
    }
    while (!is(0) && !abandoned_ && !lifetime_.is_closing()) wait_for_change();
    if (lifetime_.is_closing()) return Reason::closed;
    if (abandoned_) {
        free();
        return Reason::abandoned;
    }
    levels_.reserve(1);
    held_sections::remember(stream_, ++last_number_);
    levels_.push_back({holder, task});
    number_.store(last_number_, std::memory_order_relaxed);
    if (this_thread == none_yet) this_thread = 1 + threads_inside.fetch_add(1, std::memory_order_relaxed);
    owner_.store(this_thread, std::memory_order_relaxed);
    note_task();
    lifetime_.begin_exclusive();
    while ((lifetime_.load() & Lifetime::inner_leases) != 0) changed_.wait(mutex_);
    return {};
}

bool ExclusiveSection::end(const void* holder) noexcept {
    if (is_forked()) return true;  // as in wake()
    std::uint64_t number = 0;
    {
        const Lock lock(mutex_);
        const auto mine =
            std::find_if(levels_.rbegin(), levels_.rend(), [&](const Level& level) { return level.holder == holder; });
        if (mine == levels_.rend()) return false;
        levels_.erase(std::next(mine).base());
        note_task();
        if (!levels_.empty()) return true;
        number = number_.load(std::memory_order_relaxed);
        free();
    }
    held_sections::forget(stream_, number);
    return true;
}

void ExclusiveSection::drop(const void* holder) noexcept {
    if (is_forked() || is(0)) return;  // without the lock at first: most were ended
    std::uint64_t number = 0;
    {
        const Lock lock(mutex_);
        const auto left =
            std::remove_if(levels_.begin(), levels_.end(), [&](const Level& level) { return level.holder == holder; });
        if (left == levels_.end()) return;
        levels_.erase(left, levels_.end());
        note_task();
        if (!levels_.empty()) return;
        number = number_.load(std::memory_order_relaxed);
        mark_abandoned();
    }
    held_sections::forget(stream_, number);
}

void ExclusiveSection::give_up(std::uint64_t task) noexcept {
    if (is_forked()) return;
    const Lock lock(mutex_);
    give_up_levels(task);
}

void ExclusiveSection::abandon(std::uint64_t number) noexcept {
    // Without the lock at first: most threads that end have sections in their list which others ended.
    if (is_forked() || !is(number)) return;
    const Lock lock(mutex_);
    if (is(number)) mark_abandoned();
}

Status ExclusiveSection::check_task() noexcept {
    if (!is_of_task_.load(std::memory_order_relaxed)) return {};
    const Tasks* const tasks = known_tasks.load(std::memory_order_acquire);
    if (tasks == nullptr) return {};
    const std::uint64_t running = tasks->running();
    std::uint64_t inside = 0;
    {
        const Lock lock(mutex_);
        if (!is_mine()) return {};  // ended meanwhile
        inside = first_task();
    }
    if (inside == 0 || inside == running) return {};
    if (!tasks->has_ended(inside)) return Reason::other_task;
    give_up(inside);  // whoever awaited it runs before those who are called when it is done
    return {};
}

Status ExclusiveSection::wait() noexcept {
    const Lock lock(mutex_);
    while ((lifetime_.load() & Lifetime::exclusive) != 0 && !lifetime_.is_closing()) {
        if (abandoned_) {
            free();
            return Reason::abandoned;
        }
        wait_for_change();
    }
    return {};
}

void ExclusiveSection::wake() noexcept {
    if (is_forked()) return;  // the lock may be that of a thread which is not in this process
    const Lock lock(mutex_);
    changed_.notify_all();
}

void ExclusiveSection::wait_for_change() noexcept {
    constexpr std::chrono::milliseconds pause{20};
    const auto of_task = [](const Level& level) { return level.task != 0; };
    const driver::clock::Sleep sleep;
    if (std::none_of(levels_.begin(), levels_.end(), of_task)) {
        changed_.wait(mutex_);
        return;
    }
    // A task's end is told by its event loop, which may not turn again: its thread may wait for this one.
    changed_.wait_for(mutex_, pause);
    const Tasks* const tasks = known_tasks.load(std::memory_order_acquire);
    for (std::size_t index = 0; index < levels_.size(); ++index) {  // others change them meanwhile
        const std::uint64_t task = levels_[index].task;
        if (task == 0) continue;
        mutex_.unlock();
        const bool ended = tasks != nullptr && tasks->has_ended(task);
        mutex_.lock();
        if (ended) give_up_levels(task);
    }
}

void ExclusiveSection::give_up_levels(std::uint64_t task) noexcept {
    const auto of_task = [&](const Level& level) { return level.task == task; };
    if (levels_.empty()) return;
    if (std::all_of(levels_.begin(), levels_.end(), of_task)) {
        mark_abandoned();  // whoever has it may still end it, until the next one is told
        return;
    }
    levels_.erase(std::remove_if(levels_.begin(), levels_.end(), of_task), levels_.end());
    note_task();
}

void ExclusiveSection::mark_abandoned() noexcept {
    abandoned_ = true;
    owner_.store(0, std::memory_order_relaxed);
    changed_.notify_all();
}

void ExclusiveSection::free() noexcept {
    levels_.clear();
    number_.store(0, std::memory_order_relaxed);
    owner_.store(0, std::memory_order_relaxed);
    abandoned_ = false;
    lifetime_.end_exclusive();
    changed_.notify_all();
}

}  // namespace ftcuda::core
