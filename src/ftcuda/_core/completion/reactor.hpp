// Looks at completions that are armed, and tells who waits for each once it is over: a service, beside the one that
// lets go of what is over (deferred_release.hpp), in the same thread.
//
// A word in memory it reads; of the events it asks for the oldest of each stream. Work that a driver gives up would
// never write a word: so each millisecond it asks whether the contexts of the older ones still live.
#pragma once

#include "completion.hpp"
#include "service.hpp"

namespace ftcuda::core {

class Reactor final : public Service {
public:
    static Reactor& only();

    // Between two looks: none while something is younger than 50 us, then a part of the age of the youngest; never any;
    // always some. Nothing is looked at while nothing is armed.
    enum class Pace : int { adapted, spinning, sleeping };
    void set_pace(Pace pace) noexcept { pace_.store(pace, std::memory_order_relaxed); }

    // Tells `waiter` when the work behind `awaited`, of that context, is done. Throws if there can be no thread.
    Status begin(Awaited& awaited, Context& context, std::unique_ptr<Waiter> waiter) EXCLUDES(mutex_);
    // The same, but first the caller's thread looks for as long as the service would do nothing else. `is_over`: that
    // was enough, and nobody is told.
    Status begin(Awaited& awaited, Context& context, std::unique_ptr<Waiter> waiter, bool& is_over) EXCLUDES(mutex_);
    // How many it has.
    std::size_t pending() const noexcept { return pending_.load(std::memory_order_relaxed); }

private:
    Reactor() : Service(ServiceThread::common(), Pause(0)) {}

    // One that is armed.
    Status arm(Awaited& awaited, Context& context, std::unique_ptr<Waiter> waiter, Completions& armed);
    void put(Completions& completion) noexcept EXCLUDES(mutex_);
    Pause turn() noexcept override EXCLUDES(mutex_);
    void take_in() noexcept EXCLUDES(mutex_);
    void look_at_words() noexcept;
    void ask_for_events() noexcept;
    void ask_for_contexts(Completion::Time now) noexcept;
    void finish(Completions& from, Completions::iterator which, Status status) noexcept;
    Pause pause(Completion::Time now) const noexcept;

    // Relaxed, both: they guard no data.
    std::atomic<Pace> pace_{Pace::adapted};
    std::atomic<std::size_t> pending_{0};

    Mutex mutex_{Rank::reactor};
    Completions arrived_ GUARDED_BY(mutex_);

    // Of the service alone.
    Completions by_word_;
    Completions by_event_;  // those of one stream stand together, the oldest first
    Completion::Time youngest_{};
    Completion::Time asked_{};  // for contexts
};

}  // namespace ftcuda::core
