// Requests of one priority that wait for a batch, in slabs: the open one, into which all write, and those before it,
// which are full.
//
// There are enough slabs for all rows that may wait, so that whose ticket reaches the end of one always finds the next:
// the dispatcher keeps one at hand.
#pragma once

#include "slab.hpp"

#include <vector>

namespace ftcuda::core::serving {

class Queue {
public:
    // Slabs of the caller's, of one capacity, at least three.
    explicit Queue(std::vector<Slab*> slabs);

    // Rows of a request, by any thread: `copy(slab, first, row, count)` writes count of them, from `row` on. `need()`
    // is called while the next slab is not at hand.
    template <class Copy, class Need>
    void put(Ref<Request> request, Copy copy, Need need) {
        for (std::size_t row = 0; row < request->rows();) {
            Slab& slab = *open_.load(std::memory_order_acquire);
            const Slab::Ticket ticket = slab.take(request->rows() - row);
            if (ticket.count == 0) {
                wait_for_next(slab);
                continue;
            }
            if (ticket.reaches_end) open_next(slab, need);
            copy(slab, ticket.first, row, ticket.count);
            slab.put(ticket, request, row);
            row += ticket.count;
        }
    }

    // What follows is the dispatcher's alone.

    // The one to be sent off next, with rows or without.
    Slab& first() const noexcept { return *first_; }
    bool is_empty() const noexcept { return first_->rows() == 0; }
    // Takes it away: none but those who have tickets write to it any more. How many rows it has.
    std::size_t take(Slab& slab);
    // One that was taken, whose rows are over.
    void give_back(Slab& slab) { free_.push_back(&slab); }
    // So that the next slab is at hand. False if there is none; one is given back then before anybody needs two.
    bool replenish() noexcept;

private:
    void wait_for_next(const Slab& slab) const noexcept;
    template <class Need>
    void open_next(Slab& slab, Need need) {
        Slab* next = nullptr;
        while ((next = at_hand_.exchange(nullptr, std::memory_order_acq_rel)) == nullptr) need();
        follow(slab, *next);
    }
    void follow(Slab& slab, Slab& next) noexcept {
        next.open();
        slab.set_next(next);
        open_.store(&next, std::memory_order_release);
    }

    std::atomic<Slab*> open_;              // release by who opens the next, acquire by who submits
    std::atomic<Slab*> at_hand_{nullptr};  // the next one; null until the dispatcher comes to it

    // Of the dispatcher alone.
    Slab* first_;
    std::vector<Slab*> free_;
};

}  // namespace ftcuda::core::serving
