// Memory in which a batch is put together, by all who submit to it at once.
//
// Who submits takes a ticket for rows with one atomic step, writes them, and says that they are written. Tickets come
// in the order of the rows, without a gap. Whose ticket reaches the end puts the next slab in the place of this one.
// Who sends a batch off that is not full closes the slab by the same word, and so knows how many rows there are; then
// it waits for those who have a ticket and still write.
#pragma once

#include "../sync/cache_line.hpp"
#include "request.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

namespace ftcuda::core::serving {

class Slab {
public:
    using Time = Request::Time;

    // Rows of a request.
    struct Part {
        Ref<Request> request;
        std::size_t row_of_request = 0, first = 0, count = 0;
    };
    struct Ticket {
        std::size_t first = 0, count = 0;  // none: it is full or closed
        bool reaches_end = false;
    };

    Slab(std::size_t capacity, Rows inputs, Rows outputs)
        : capacity_(capacity), inputs_(std::move(inputs)), outputs_(std::move(outputs)), parts_(new Part[capacity]) {}
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;

    std::size_t capacity() const noexcept { return capacity_; }
    const Rows& inputs() const noexcept { return inputs_; }
    const Rows& outputs() const noexcept { return outputs_; }

    // By who has it alone: tickets are taken from now on. Others may still try to, from when it was open last.
    void open() noexcept {
        written_.store(0, std::memory_order_relaxed);
        next_.store(nullptr, std::memory_order_relaxed);
        begun_.store(Time(), std::memory_order_relaxed);
        taken_.store(0, std::memory_order_release);
    }

    bool is_open() const noexcept { return taken_.load(std::memory_order_relaxed) < capacity_; }
    Ticket take(std::size_t rows) noexcept {
        if (!is_open()) return {};  // or the word would grow with each try
        const Word before = taken_.fetch_add(static_cast<Word>(std::min(rows, capacity_)), std::memory_order_acq_rel);
        if (before >= capacity_) return {};
        const std::size_t count = std::min<std::size_t>(rows, capacity_ - before);
        return {before, count, before + count == capacity_};
    }
    // By who has a ticket: part of a request, whose rows were copied to inputs().
    void put(const Ticket& ticket, Ref<Request> request, std::size_t row_of_request) noexcept {
        if (ticket.first == 0) begun_.store(request->arrival(), std::memory_order_relaxed);
        parts_[ticket.first] = {std::move(request), row_of_request, ticket.first, ticket.count};
        written_.fetch_add(ticket.count, std::memory_order_release);
    }

    // By who sends it off: no tickets any more. How many rows there are; `is_full`: who took the last one sees to the
    // next slab.
    std::size_t close(bool& is_full) noexcept {
        const Word before = taken_.fetch_or(closed, std::memory_order_acq_rel);
        is_full = before >= capacity_;
        return std::min<std::size_t>(before, capacity_);
    }
    std::size_t rows() const noexcept {
        return std::min<std::size_t>(taken_.load(std::memory_order_acquire) & ~closed, capacity_);
    }
    // When its oldest rows arrived; the begin of time until that is known.
    Time begun() const noexcept { return begun_.load(std::memory_order_relaxed); }
    bool is_written(std::size_t rows) const noexcept { return written_.load(std::memory_order_acquire) == rows; }
    // Once it is written.
    Part& part(std::size_t first) noexcept { return parts_[first]; }

    // The one after it; null until there is one.
    Slab* next() const noexcept { return next_.load(std::memory_order_acquire); }
    void set_next(Slab& slab) noexcept { next_.store(&slab, std::memory_order_release); }

private:
    using Word = std::uint32_t;
    static constexpr Word closed = Word{1} << 31;

    // Constant after construction.
    const std::size_t capacity_;
    const Rows inputs_, outputs_;

    const std::unique_ptr<Part[]> parts_;  // by its first row; each by who has the ticket, then by who sends it off

    // Rows for which there are tickets, and more where several came to the end at once; with `closed` from when it is
    // sent off to open(). Acquire and release: who takes a ticket sees that the memory is free again.
    alignas(64) std::atomic<Word> taken_{closed};
    [[maybe_unused]] LineBetween before_written_;
    std::atomic<std::size_t> written_{0};  // release by who wrote, acquire by who sends it off
    std::atomic<Time> begun_{Time()};      // relaxed: it guards no data
    std::atomic<Slab*> next_{nullptr};     // release by who puts it there, acquire by who sends slabs off
};

}  // namespace ftcuda::core::serving
