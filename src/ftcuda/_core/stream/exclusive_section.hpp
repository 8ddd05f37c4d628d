// The exclusive section of a stream: while a thread is inside, other threads' submissions wait, and those of other
// asyncio tasks of that thread are refused, as waiting would keep the section's own task from running.
//
// A section has levels, each of who began it: a holder, which ends it in whatever thread, and perhaps a task. It is
// over when all have ended. It is abandoned when its thread has ended, or all tasks that are inside, or whatever could
// have ended it is gone: the next one who submits or begins a section is told, once, and ends it by that.
#pragma once

#include "../sync/lifetime.hpp"
#include "../sync/mutex.hpp"
#include "../sync/reason.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

namespace ftcuda::core {

class Stream;

class ExclusiveSection {
public:
    ExclusiveSection(Stream& stream, Lifetime& lifetime) noexcept : stream_(stream), lifetime_(lifetime) {}
    ExclusiveSection(const ExclusiveSection&) = delete;
    ExclusiveSection& operator=(const ExclusiveSection&) = delete;

    // Waits for a section of another thread and for submissions in progress. `holder`: an address of the caller's.
    // `task`: what the calling thread runs, by a number that no other task is given; 0 if there is nothing of the kind,
    // or all that the thread runs is meant.
    Status begin(const void* holder, std::uint64_t task) EXCLUDES(mutex_);
    // The level that the holder began last. False when there is none any more.
    bool end(const void* holder) noexcept EXCLUDES(mutex_);
    // The holder is gone, and what it began and did not end is given up.
    void drop(const void* holder) noexcept EXCLUDES(mutex_);
    // A task has ended, and gives up what it began.
    void give_up(std::uint64_t task) noexcept EXCLUDES(mutex_);
    // The thread of the section has ended.
    void abandon(std::uint64_t number) noexcept EXCLUDES(mutex_);
    bool is(std::uint64_t number) const noexcept { return number_.load(std::memory_order_relaxed) == number; }

    // For submissions: whether the section is the calling thread's, which may be over at any moment; if it is, whether
    // it is the running task's too; else wait() for its end; and wake who waits for what a submission has changed.
    bool is_mine() const noexcept { return owner_.load(std::memory_order_relaxed) == this_thread; }
    Status check_task() noexcept EXCLUDES(mutex_);
    Status wait() noexcept EXCLUDES(mutex_);
    void wake() noexcept EXCLUDES(mutex_);

    // How the core learns of tasks: set once, before the first section. Both may attach to the interpreter, so that
    // they are asked with no lock held, and only where a task is inside of a section.
    struct Tasks {
        std::uint64_t (*running)();             // by the calling thread; 0: none
        bool (*has_ended)(std::uint64_t task);  // or is gone
    };
    static void learn_of_tasks_by(const Tasks& tasks) noexcept;

private:
    // The calling thread's number, which no other thread is given: on Windows a thread's variables go, and their
    // addresses are others', before the thread gives its sections up. From its first section on.
    static constexpr std::uint64_t none_yet = ~std::uint64_t{0};
    inline static thread_local std::uint64_t this_thread = none_yet;

    // Waits until somebody tells of a change, or a task that is inside is found to have ended.
    void wait_for_change() noexcept REQUIRES(mutex_);
    void give_up_levels(std::uint64_t task) noexcept REQUIRES(mutex_);
    void mark_abandoned() noexcept REQUIRES(mutex_);
    // Some levels were begun or ended: the section is of the task of the first one that is left, 0 if that is of none.
    std::uint64_t first_task() const noexcept REQUIRES(mutex_) { return levels_.empty() ? 0 : levels_.front().task; }
    void note_task() noexcept REQUIRES(mutex_) { is_of_task_.store(first_task() != 0, std::memory_order_relaxed); }
    void free() noexcept REQUIRES(mutex_);

    Stream& stream_;
    Lifetime& lifetime_;  // the stream's

    // The number of the thread that is inside, 0 when there is none or the section is abandoned. Written under the
    // lock, but a thread may compare it with itself without: only that thread ever stores its own number. It may find
    // itself there though another thread has just ended its section, and so looks again once it is inside
    // (Stream::begin_submission). Relaxed: the word orders.
    std::atomic<std::uint64_t> owner_{0};
    // The number of the section, 0 when there is none. Stored under the lock. Relaxed: without it a hint.
    std::atomic<std::uint64_t> number_{0};
    // Whether there is a first_task(), for the section's own thread. Stored under the lock. Relaxed: without it a hint,
    // as who ends a level in another thread is ordered with nobody.
    std::atomic<bool> is_of_task_{false};

    Mutex mutex_{Rank::exclusive_section};
    Condition changed_;
    // What was begun and not ended, in that order. Levels of an ended thread stay until somebody is told.
    struct Level {
        const void* holder;
        std::uint64_t task;
    };
    std::vector<Level> levels_ GUARDED_BY(mutex_);
    std::uint64_t last_number_ GUARDED_BY(mutex_) = 0;
    bool abandoned_ GUARDED_BY(mutex_) = false;
};

}  // namespace ftcuda::core
