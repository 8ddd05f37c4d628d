// Leases on a handle that many threads use at once, such as a buffer of weights or what all allocate from: counted
// apart once threads have met.
//
// The word is that of a Lifetime (lifetime.hpp), and at first it counts. Threads that meet there send each other its
// cache line with each lease, so that after some contention they count in cells instead, each on a line of its own for
// some of the threads. The sum matters to nobody until the handle closes:
//
//   enter()   counts in the thread's cell and looks at the word. Does that say closing, it uncounts, and asks whether
//             it is the last.
//   leave()   uncounts in the thread's cell and looks at the word. Does that say closing, it asks the same.
//   close()   sets closing, and asks the same.
//   last()    adds up the word and the cells. Nothing is left: the first one to set `claimed` destroys.
//
// A lease may be taken at the word and given back at a cell, which is then below zero.
//
// Why exactly one destroys, after everybody left. Cells, the word and the pointer to the cells are read and changed in
// one total order (seq_cst). Once closing is set nobody gets inside: each count only falls, but for a late enter, which
// lifts one cell for a moment. So what last() reads one after another adds up to no less than those who are inside when
// it has read it all, and if that is nothing it has read each one's last word. And of all who uncount or set closing,
// the last one in the order reads what all others did.
#pragma once

#include "lifetime.hpp"
#include "threads.hpp"

#include <array>
#include <new>

namespace ftcuda::core {

// How an attempt to enter ended: inside; or refused, since it is closing, of which the last must destroy.
enum class Entrance : unsigned char { inside, refused, last };

class ShardedLifetime {
public:
    ShardedLifetime() noexcept = default;
    ~ShardedLifetime() { delete cells_.load(std::memory_order_relaxed); }
    ShardedLifetime(const ShardedLifetime&) = delete;
    ShardedLifetime& operator=(const ShardedLifetime&) = delete;

    Entrance enter() noexcept {
        FTCUDA_SCHEDULE_POINT("enter");
        if (Cells* const cells = cells_.load(std::memory_order_acquire)) return enter(*cells);
        Word seen = word_.load(std::memory_order_relaxed);
        while ((seen & Lifetime::closing) == 0) {
            FTCUDA_SCHEDULE_POINT("enter at the word");
            if (word_.compare_exchange_strong(seen, seen + Lifetime::lease)) return Entrance::inside;
            if (contention_.fetch_add(1, std::memory_order_relaxed) + 1 < allowed_contention) continue;
            if (Cells* const cells = make_cells()) return enter(*cells);
        }
        return Entrance::refused;
    }

    // True: the caller was the last inside a closing handle, and must destroy it.
    bool leave() noexcept {
        FTCUDA_SCHEDULE_POINT("leave");
        if (Cells* const cells = cells_.load(std::memory_order_acquire)) return leave(*cells);
        return (word_.fetch_sub(Lifetime::lease) & Lifetime::closing) != 0 && last();
    }

    // True: the caller must destroy.
    bool close() noexcept {
        FTCUDA_SCHEDULE_POINT("close");
        word_.fetch_or(Lifetime::closing);
        return last();
    }

    bool is_closing() const noexcept { return (word_.load(std::memory_order_acquire) & Lifetime::closing) != 0; }

    // From now on threads count in cells, as after some contention. False without memory for them: the word goes on
    // counting.
    bool spread() noexcept { return make_cells() != nullptr; }

private:
    using Word = Lifetime::Word;
    static constexpr Word claimed = 2;  // in place of Lifetime::exclusive
#ifdef FTCUDA_SCHEDULE_POINTS
    static constexpr unsigned allowed_contention = 1;  // threads that run one at a time seldom meet
#else
    static constexpr unsigned allowed_contention = 16;
#endif

    struct alignas(64) Cell {
        std::atomic<std::int64_t> leases{0};
    };
    using Cells = std::array<Cell, 16>;

    static std::atomic<std::int64_t>& cell_of(Cells& cells) noexcept {
        return cells[number_of_this_thread() % cells.size()].leases;
    }

    Entrance enter(Cells& cells) noexcept {
        cell_of(cells).fetch_add(1);
        FTCUDA_SCHEDULE_POINT("entered a cell");
        if ((word_.load() & Lifetime::closing) == 0) return Entrance::inside;
        return leave(cells) ? Entrance::last : Entrance::refused;
    }

    bool leave(Cells& cells) noexcept {
        cell_of(cells).fetch_sub(1);
        FTCUDA_SCHEDULE_POINT("left a cell");
        return (word_.load() & Lifetime::closing) != 0 && last();
    }

    bool last() noexcept {
        FTCUDA_SCHEDULE_POINT("last");
        std::int64_t inside = static_cast<std::int64_t>(word_.load() / Lifetime::lease);
        if (const Cells* const cells = cells_.load()) {
            for (const Cell& cell : *cells) inside += cell.leases.load();
        }
        return inside == 0 && (word_.fetch_or(claimed) & claimed) == 0;
    }

    Cells* make_cells() noexcept {
        Cells* const made = new (std::nothrow) Cells;
        Cells* found = nullptr;
        if (made == nullptr || cells_.compare_exchange_strong(found, made)) return made;
        delete made;
        return found;
    }

    std::atomic<Word> word_{0};
    std::atomic<Cells*> cells_{nullptr};   // set once
    std::atomic<unsigned> contention_{0};  // relaxed: it guards no data
};

}  // namespace ftcuda::core
