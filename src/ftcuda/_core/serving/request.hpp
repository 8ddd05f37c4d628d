// What somebody wants to have computed: some rows, and what comes of them.
//
// It ends once: done, failed, cancelled or expired, whoever comes first. One word says so, which who waits sleeps at;
// the same word says whether anybody does, so that who ends a request for which nobody waits makes no call. Its rows
// may be in several batches; what comes of them is copied into memory of its own, so that nobody who keeps an answer
// keeps a batch.
#pragma once

#include "../completion/completion.hpp"
#include "../sync/limit.hpp"
#include "../sync/ref.hpp"
#include "rows.hpp"

#include <atomic>
#include <memory>

namespace ftcuda::core::serving {

class Request final : public Shared {
public:
    using Time = std::chrono::steady_clock::time_point;

    // `results`: of each row. `deadline`: from then on it is not begun any more.
    Request(std::size_t rows, const RowSizes& results, Time arrival, Time deadline)
        : rows_(rows), memory_(new std::byte[Rows::bytes(results, rows)]), results_(memory_.get(), results, rows),
          arrival_(arrival), deadline_(deadline), left_(rows) {}

    // The same that arrives now, and is begun within so many seconds or not at all.
    static Request* make(std::size_t rows, const RowSizes& results, double seconds) {
        const Time now = driver::clock::look().time;
        return new Request(rows, results, now, limit::deadline(now, seconds));
    }

    std::size_t rows() const noexcept { return rows_; }
    const Rows& results() const noexcept { return results_; }
    Time arrival() const noexcept { return arrival_; }
    Time deadline() const noexcept { return deadline_; }

    bool is_over() const noexcept { return (word_.load(std::memory_order_acquire) & states) >= done; }
    bool is_cancelled() const noexcept { return (word_.load(std::memory_order_acquire) & states) == cancelled; }
    // Once it is over. `cause`: what has raised, for `raised`.
    Status status() const noexcept { return status_; }
    Shared* cause() const noexcept { return cause_.get(); }

    // Each is true for who ends it, and calls `note()` before anybody knows.
    template <class Note>
    bool cancel(Note note) noexcept {
        return end(cancelled, Reason::cancelled, {}, note);
    }
    template <class Note>
    bool fail(Status status, Ref<Shared> cause, Note note) noexcept {
        return end(failed, status, std::move(cause), note);
    }
    // That results of so many more rows are there; with the last of them it is done. By one thread at a time.
    template <class Note>
    bool add(std::size_t rows, Note note) noexcept {
        left_ -= rows;
        return left_ == 0 && end(done, {}, {}, note);
    }

    // Something that belongs to it: what came first, of all that were brought.
    Shared& attach(Ref<Shared> what) noexcept {
        Shared* first = nullptr;
        if (attached_.compare_exchange_strong(first, what.get(), std::memory_order_acq_rel)) first = what.detach();
        return *first;
    }
    Shared* attached() const noexcept { return attached_.load(std::memory_order_acquire); }

    // Until it is over: how it ended; or `timed_out` or `interrupted`.
    Status wait(const Limit& limit) noexcept;
    // Tells it of a success when it is over, however it ended; at once if it is. Who came first is told first.
    void tell(std::unique_ptr<Waiter> waiter);

private:
    using Word = std::uint32_t;
    // In this order: what is `done` or more is over. `ending`: somebody ends it, and has yet to say how.
    static constexpr Word pending = 0, ending = 1, done = 2, failed = 3, cancelled = 4, states = 7, has_sleepers = 8;

    struct Told {
        std::unique_ptr<Waiter> waiter;
        Told* next;
    };

    ~Request() override;
    template <class Note>
    bool end(Word how, Status status, Ref<Shared> cause, Note note) noexcept {
        if (!claim()) return false;
        note();
        cause_ = std::move(cause);
        publish(how, status);
        return true;
    }
    bool claim() noexcept;
    void publish(Word how, Status status) noexcept;
    static Told* nobody_more() noexcept;

    // Constant after construction.
    const std::size_t rows_;
    const std::unique_ptr<std::byte[]> memory_;
    const Rows results_;
    const Time arrival_, deadline_;

    std::size_t left_;                 // rows without results, of who adds them
    std::atomic<Word> word_{pending};  // release, after all that it says; acquire by who looks
    Status status_;                    // by who ends it, before it says so, as the next one
    Ref<Shared> cause_;
    // Who is told: pushed with release, taken with acquire, and closed by who ends it.
    std::atomic<Told*> told_{nullptr};
    std::atomic<Shared*> attached_{nullptr};  // acquire and release
};

}  // namespace ftcuda::core::serving
