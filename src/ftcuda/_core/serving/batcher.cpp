#include "batcher.hpp"

#include "../../_driver/schedule.hpp"
#include "../device/process.hpp"
#include "../sync/may_wait.hpp"
#include "../sync/word.hpp"

#include <algorithm>
#include <thread>

namespace ftcuda::core::serving {

namespace {

using std::chrono::microseconds;

constexpr microseconds young{100};           // a batch under way, for whose end the thread looks all the time
constexpr microseconds longest_pause{1000};  // between two looks at older ones
constexpr microseconds longest_sleep{100'000};
constexpr int share = 16;  // of the age of the youngest

}  // namespace

Ref<Batcher> Batcher::start(Policy policy, RowSizes inputs, RowSizes outputs, std::unique_ptr<Engine> engine,
                            std::vector<std::unique_ptr<Slab>> slabs) {
    Ref<Batcher> made = Ref<Batcher>::adopt(
        new Batcher(std::move(policy), std::move(inputs), std::move(outputs), std::move(engine), std::move(slabs)));
    std::thread([mine = made]() mutable {
        if (!mine->run()) mine.detach();  // at exit: lanes may still write to the slabs
    }).detach();
    return made;
}

Batcher::Batcher(Policy policy, RowSizes inputs, RowSizes outputs, std::unique_ptr<Engine> engine,
                 std::vector<std::unique_ptr<Slab>> slabs)
    : policy_(std::move(policy)), input_sizes_(std::move(inputs)), output_sizes_(std::move(outputs)),
      slabs_(std::move(slabs)), lanes_(policy_.lanes()), engine_(std::move(engine)) {
    for (std::size_t level = 0; level < policy_.priorities; ++level) {
        std::vector<Slab*> mine;
        for (std::size_t index = 0; index < policy_.slabs(); ++index)
            mine.push_back(slabs_[level * policy_.slabs() + index].get());
        levels_.push_back(std::make_unique<Level>(std::move(mine)));
    }
}

Status Batcher::submit(Request& request, const Rows& rows, std::size_t priority, const Limit& limit) {
    if (const Status status = may_wait(); !status.ok()) return status;
    switch (lifetime_.enter()) {
    case Entrance::inside: break;
    case Entrance::last: all_left(); [[fallthrough]];
    case Entrance::refused: return Reason::closed;
    }
    if (const Status status = make_room(request.rows(), limit); !status.ok()) {
        if (status.reason() == Reason::queue_full) statistics_.add(Count::rejected);
        leave();
        return status;
    }
    statistics_.add(Count::requests);
    statistics_.add(Count::rows, request.rows());
    if (request.rows() == 0) request.add(0, [this] { statistics_.add(Count::done); });
    const auto copy = [&](const Slab& slab, std::size_t first, std::size_t row, std::size_t count) {
        slab.inputs().copy_from(first, rows, row, count, input_sizes_);
    };
    const auto need = [this] {
        wake();
        FTCUDA_SCHEDULE_POINT("need a slab");
        std::this_thread::yield();
    };
    levels_[priority]->queue.put(Ref<Request>(request), copy, need);
    wake();
    leave();
    return {};
}

Status Batcher::make_room(std::size_t rows, const Limit& limit) noexcept {
    const Status status = wait_until_ready(limit, false, [&]() -> Status {
        if (queued_.fetch_add(rows, std::memory_order_relaxed) + rows <= policy_.max_queued) return {};
        queued_.fetch_sub(rows, std::memory_order_relaxed);
        if (is_closed()) return Reason::closed;
        return Status::from_driver(abi::CUDA_ERROR_NOT_READY, Entry::none);
    });
    return status.reason() == Reason::timed_out ? Status(Reason::queue_full) : status;
}

void Batcher::wake() noexcept {
    news_.fetch_add(1, std::memory_order_seq_cst);
    if (sleeps_.load(std::memory_order_seq_cst) == 0) return;
    if (sleeps_.exchange(0, std::memory_order_seq_cst) != 0) word::wake(sleeps_);
}

void Batcher::leave() noexcept {
    if (lifetime_.leave()) all_left();
}

void Batcher::all_left() noexcept {
    all_left_.store(true, std::memory_order_release);
    wake();
}

void Batcher::close() noexcept {
    if (lifetime_.close()) all_left_.store(true, std::memory_order_release);
    wake();
}

void Batcher::abandon() noexcept {
    abandoned_.store(true, std::memory_order_relaxed);
    close();
}

Status Batcher::wait_for_rest(const Limit& limit) noexcept {
    return wait_until_ready(limit, false, [&]() -> Status {
        if (ended_.load(std::memory_order_acquire)) return {};
        return Status::from_driver(abi::CUDA_ERROR_NOT_READY, Entry::none);
    });
}

// ---- The thread ----------------------------------------------------------------------------------------------------

bool Batcher::run() noexcept {
    for (;;) {
        if (!process::may_destroy()) return false;
        const std::uint64_t seen = news_.load(std::memory_order_seq_cst);
        const Time now = driver::clock::look().time;
        bool moved = look_at_lanes(now);
        moved = (abandoned_.load(std::memory_order_relaxed) ? fail_rest() : send_off(now)) || moved;
        for (const auto& each : levels_) each->queue.replenish();
        if (moved) continue;
        if (is_over()) break;
        sleep(seen, now);
    }
    engine_.reset();
    ended_.store(true, std::memory_order_release);
    return true;
}

bool Batcher::is_over() const noexcept {
    if (!all_left_.load(std::memory_order_acquire) || under_way() != 0) return false;
    return std::all_of(levels_.begin(), levels_.end(), [](const auto& each) { return each->queue.is_empty(); });
}

bool Batcher::look_at_lanes(Time now) noexcept {
    bool moved = false;
    for (std::size_t index = 0; index < lanes_.size(); ++index) {
        Lane& lane = lanes_[index];
        if (lane.slab == nullptr) continue;
        Ref<Shared> cause;
        const Status status = engine_->ask(index, cause);
        if (status.is(abi::CUDA_ERROR_NOT_READY)) {
            if (lane.is_late || now - lane.began < policy_.time_limit) continue;
            lane.is_late = true;
            tell(*lane.slab, lane.rows, Reason::timed_out, {}, now);
            continue;
        }
        if (!status.ok() && engine_->is_lost()) is_lost_.store(true, std::memory_order_relaxed);
        if (!lane.is_late) {
            statistics_.device.add(now - lane.began);
            tell(*lane.slab, lane.rows, status, cause, now);
        }
        lane.queue->give_back(*lane.slab);
        lane = Lane();
        moved = true;
    }
    return moved;
}

bool Batcher::send_off(Time now) noexcept {
    Lane* const lane = free_lane();
    if (lane == nullptr) return false;
    Count reason = Count::left_full;
    Level* const level = choose(now, reason);
    if (level == nullptr) return false;
    Slab& slab = level->queue.first();
    const std::size_t taken = level->queue.take(slab);
    queued_.fetch_sub(taken, std::memory_order_relaxed);
    now = driver::clock::look().time;  // requests came since: what has expired is never begun
    const std::size_t rows = gather(slab, taken, now);
    if (rows == 0) {
        level->queue.give_back(slab);
        return true;
    }
    statistics_.add(reason);
    lane->slab = &slab;
    begin(*lane, *level, rows, now);
    return true;
}

void Batcher::begin(Lane& lane, Level& level, std::size_t rows, Time now) noexcept {
    const std::size_t size = *std::lower_bound(policy_.sizes.begin(), policy_.sizes.end(), rows);
    statistics_.add(Count::batches);
    statistics_.add(Count::batch_rows, rows);
    statistics_.add(Count::padding, size - rows);
    lane.queue = &level.queue;
    lane.rows = rows;
    lane.began = now;
    lane.slab->inputs().clear(rows, size - rows, input_sizes_);  // instead of rows that were given up
    engine_->launch(static_cast<std::size_t>(&lane - lanes_.data()), *lane.slab, size);
}

Batcher::Lane* Batcher::free_lane() noexcept {
    const auto found =
        std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& each) { return each.slab == nullptr; });
    return found == lanes_.end() ? nullptr : &*found;
}

std::size_t Batcher::under_way() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& each) { return each.slab != nullptr; }));
}

Batcher::Level* Batcher::choose(Time now, Count& reason) noexcept {
    Level* found = nullptr;
    for (const auto& each : levels_) {
        if (each->queue.is_empty() || !may_leave(each->queue.first(), now, reason)) continue;
        if (found == nullptr || each->passed_over >= policy_.patience) found = each.get();
        if (found->passed_over >= policy_.patience) break;
    }
    if (found == nullptr) return nullptr;
    may_leave(found->queue.first(), now, reason);
    bool is_lower = false;
    for (const auto& each : levels_) {
        if (is_lower && !each->queue.is_empty()) ++each->passed_over;
        is_lower = is_lower || each.get() == found;
    }
    found->passed_over = 0;
    return found;
}

bool Batcher::may_leave(const Slab& slab, Time now, Count& reason) const noexcept {
    const Time begun = slab.begun();
    const bool is_old = begun != Time() && now - begun >= policy_.max_delay;
    reason = slab.rows() == slab.capacity()    ? Count::left_full
             : is_closed()                     ? Count::left_by_drain
             : under_way() < policy_.in_flight ? Count::left_by_idleness
                                               : Count::left_by_delay;
    return reason != Count::left_by_delay || is_old;
}

std::size_t Batcher::gather(Slab& slab, std::size_t rows, Time now) noexcept {
    std::size_t left = 0;
    for (std::size_t row = 0; row < rows;) {
        Slab::Part part = std::move(slab.part(row));
        row += part.count;
        if (now >= part.request->deadline())
            part.request->fail(Reason::expired, {}, [this] { statistics_.add(Count::expired); });
        if (part.request->is_over()) continue;
        statistics_.waiting.add(now - part.request->arrival());
        if (part.first != left) slab.inputs().copy_from(left, slab.inputs(), part.first, part.count, input_sizes_);
        part.first = left;
        left += part.count;
        slab.part(part.first) = std::move(part);
    }
    return left;
}

void Batcher::tell(Slab& slab, std::size_t rows, Status status, const Ref<Shared>& cause, Time now) noexcept {
    for (std::size_t row = 0; row < rows;) {
        const Slab::Part part = std::move(slab.part(row));
        Request& request = *part.request;
        row += part.count;
        if (!status.ok()) {
            request.fail(status, cause, [this] { statistics_.add(Count::failed); });
            continue;
        }
        if (request.is_over()) continue;
        request.results().copy_from(part.row_of_request, slab.outputs(), part.first, part.count, output_sizes_);
        request.add(part.count, [&] {
            statistics_.add(Count::done);
            statistics_.total.add(now - request.arrival());
        });
    }
}

bool Batcher::fail_rest() noexcept {
    bool moved = false;
    for (const auto& each : levels_) {
        while (!each->queue.is_empty()) {
            Slab& slab = each->queue.first();
            const std::size_t rows = each->queue.take(slab);
            queued_.fetch_sub(rows, std::memory_order_relaxed);
            tell(slab, rows, Reason::closed, {}, Time());
            each->queue.give_back(slab);
            moved = true;
        }
    }
    return moved;
}

void Batcher::sleep(std::uint64_t seen, Time now) noexcept {
    auto pause = longest_sleep;
    for (const Lane& each : lanes_) {
        if (each.slab == nullptr) continue;
        const auto age = std::chrono::duration_cast<microseconds>(now - each.began);
        pause = std::min(pause, age < young ? microseconds(0) : std::min(age / share, longest_pause));
    }
    if (pause == microseconds(0)) {
        std::this_thread::yield();
        return;
    }
    sleeps_.store(1, std::memory_order_seq_cst);
    if (news_.load(std::memory_order_seq_cst) == seen) word::wait(sleeps_, 1, pause);
    sleeps_.store(0, std::memory_order_relaxed);
}

}  // namespace ftcuda::core::serving
