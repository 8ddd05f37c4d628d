// Puts requests of many threads together to batches, and sends these off.
//
// A batch leaves when a lane is free for it, and it is full, or its oldest request has waited for long enough, or fewer
// batches are under way than keep the device busy: an idle device waits for nobody. One thread of the batcher's own,
// which never enters the interpreter, sends batches off, asks for them and hands out their results. It sleeps while
// there is nothing to do.
#pragma once

#include "../sync/cache_line.hpp"
#include "../sync/sharded_lifetime.hpp"
#include "engine.hpp"
#include "queue.hpp"
#include "statistics.hpp"

#include <vector>

namespace ftcuda::core::serving {

struct Policy {
    std::vector<std::size_t> sizes;  // of batches, the smallest first; the last one is the slabs' capacity
    std::chrono::nanoseconds max_delay{200'000};
    std::chrono::nanoseconds time_limit = std::chrono::nanoseconds::max();  // for a batch under way
    std::size_t max_queued = 4096;                                          // rows
    std::size_t in_flight = 2;                                              // batches that keep the device busy
    std::size_t priorities = 1;
    std::size_t patience = 8;  // batches of higher priorities, after which one of a lower one leaves

    void set_times(double delay_seconds, double limit_seconds) noexcept {
        const Request::Time zero{};
        max_delay = limit::deadline(zero, delay_seconds) - zero;
        time_limit = limit::deadline(zero, limit_seconds) - zero;
    }
    std::size_t capacity() const noexcept { return sizes.back(); }
    std::size_t lanes() const noexcept { return in_flight + 1; }
    std::size_t slabs() const noexcept { return max_queued / capacity() + lanes() + 3; }  // for each priority
};

class Batcher final : public Shared {
public:
    // `slabs`: policy.slabs() for each priority. Their memory and the engine are in use until all is over. Starts the
    // thread.
    static Ref<Batcher> start(Policy policy, RowSizes inputs, RowSizes outputs, std::unique_ptr<Engine> engine,
                              std::vector<std::unique_ptr<Slab>> slabs);

    // By any thread. Rows are read before it returns; `queue_full` if there is no room for them within the limit, and
    // `closed`.
    Status submit(Request& request, const Rows& rows, std::size_t priority, const Limit& limit);

    // Takes no requests any more. What was submitted runs to its end.
    void close() noexcept;
    // The same, and what has not left yet fails with `closed`.
    void abandon() noexcept;
    bool is_closed() const noexcept { return lifetime_.is_closing(); }
    // After close(): until all is over.
    Status wait_for_rest(const Limit& limit) noexcept;

    // True for who ends it by that.
    bool cancel(Request& request) noexcept {
        return request.cancel([this] { statistics_.add(Count::cancelled); });
    }

    const Statistics& statistics() const noexcept { return statistics_; }
    // Whether the device has failed, so that whatever is submitted fails: by what became of its batches.
    bool is_lost() const noexcept { return is_lost_.load(std::memory_order_relaxed); }
    std::size_t queued() const noexcept { return queued_.load(std::memory_order_relaxed); }
    const RowSizes& inputs() const noexcept { return input_sizes_; }
    const RowSizes& outputs() const noexcept { return output_sizes_; }

private:
    using Time = Request::Time;

    struct Lane {
        Slab* slab = nullptr;  // null: it is free
        Queue* queue = nullptr;
        std::size_t rows = 0;
        Time began{};
        bool is_late = false;  // its requests have failed; the lane is free once the engine says so
    };
    struct Level {
        Queue queue;
        std::size_t passed_over = 0;  // batches of higher priorities that left while it had rows

        explicit Level(std::vector<Slab*> slabs) : queue(std::move(slabs)) {}
    };

    Batcher(Policy policy, RowSizes inputs, RowSizes outputs, std::unique_ptr<Engine> engine,
            std::vector<std::unique_ptr<Slab>> slabs);
    ~Batcher() override = default;

    Status make_room(std::size_t rows, const Limit& limit) noexcept;
    // After whatever the thread is to look at.
    void wake() noexcept;
    void leave() noexcept;
    void all_left() noexcept;

    // The thread's. False at exit, when lanes may be amid a batch.
    bool run() noexcept;
    bool look_at_lanes(Time now) noexcept;
    bool send_off(Time now) noexcept;
    bool fail_rest() noexcept;
    bool is_over() const noexcept;
    void sleep(std::uint64_t seen, Time now) noexcept;

    Lane* free_lane() noexcept;
    std::size_t under_way() const noexcept;
    // Whose turn it is; null if nobody may leave.
    Level* choose(Time now, Count& reason) noexcept;
    bool may_leave(const Slab& slab, Time now, Count& reason) const noexcept;
    // Moves the rows of those that are not over to the begin of the slab; how many these are.
    std::size_t gather(Slab& slab, std::size_t rows, Time now) noexcept;
    void begin(Lane& lane, Level& level, std::size_t rows, Time now) noexcept;
    // Of a batch: tells its requests.
    void tell(Slab& slab, std::size_t rows, Status status, const Ref<Shared>& cause, Time now) noexcept;

    // Constant after construction.
    const Policy policy_;
    const RowSizes input_sizes_, output_sizes_;
    const std::vector<std::unique_ptr<Slab>> slabs_;

    ShardedLifetime lifetime_;            // who submits is inside
    std::atomic<bool> all_left_{false};   // and none comes any more. Release by the last, acquire by the thread
    std::atomic<bool> abandoned_{false};  // relaxed: it guards no data
    std::atomic<bool> is_lost_{false};    // relaxed: as above
    std::atomic<bool> ended_{false};      // release by the thread, when all is over, acquire by who waits for that
    // What each submission writes has a cache line of its own.
    [[maybe_unused]] LineBetween before_queued_;
    std::atomic<std::size_t> queued_{0};  // rows that wait, or are about to; relaxed: it guards no data
    // How often there was something new, and 1 while the thread sleeps or is about to. Sequentially consistent: either
    // who has something sees that the thread sleeps, or that sees that there is something new.
    [[maybe_unused]] LineBetween before_news_;
    std::atomic<std::uint64_t> news_{0};
    [[maybe_unused]] LineBetween before_sleeps_;
    std::atomic<std::uint32_t> sleeps_{0};

    Statistics statistics_;

    // The list is constant, and the queues synchronise themselves; the rest is the thread's alone.
    std::vector<std::unique_ptr<Level>> levels_;
    std::vector<Lane> lanes_;
    std::unique_ptr<Engine> engine_;  // until all is over
};

}  // namespace ftcuda::core::serving
