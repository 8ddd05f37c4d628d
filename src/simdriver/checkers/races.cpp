#include "races.hpp"

#include "../state/allocations.hpp"
#include "../state/per_thread.hpp"
#include "violations.hpp"

#include <algorithm>
#include <array>

namespace ftcuda::sim::races {

namespace {

// Relaxed: switched while nothing runs.
std::atomic<bool> watching{false};

Clock host;  // under the driver's lock

using Ranges = std::map<std::uint64_t, std::uint64_t>;  // begin -> end, apart from each other

// By ptx::Access, of the work that this thread runs.
std::array<Ranges, 3>& touched() {
    static const PerThread<std::array<Ranges, 3>> mine;
    return *mine;
}

constexpr std::size_t remembered = 512;  // of the accesses to one allocation, the latest

void join(Clock& into, const Clock& from) {
    for (const auto& [queue, position] : from) {
        std::uint64_t& mine = into[queue];
        mine = std::max(mine, position);
    }
}

bool knows(const Clock& clock, const Past& past) {
    const auto found = clock.find(past.queue);
    return found != clock.end() && found->second >= past.position;
}

bool conflict(ptx::Access a, ptx::Access b) noexcept {
    return a != b || a == ptx::Access::write;  // reads beside reads are fine, and so are atomics beside atomics
}

const char* verb(ptx::Access access) noexcept {
    return access == ptx::Access::read ? "reads" : access == ptx::Access::write ? "writes" : "updates";
}

void report(const Allocation& allocation, const Past& past, const Past& now) {
    const std::uint64_t begin = std::max(past.begin, now.begin) - allocation.begin;
    const std::uint64_t end = std::min(past.end, now.end) - allocation.begin;
    violation("no order between streams: " + now.what + " in stream " + std::to_string(now.queue) + ' ' +
              verb(now.access) + " bytes " + std::to_string(begin) + " to " + std::to_string(end) +
              " of an allocation of " + std::to_string(allocation.in_use) + " that " + past.what + " in stream " +
              std::to_string(past.queue) + ' ' + verb(past.access));
}

void compare(Allocation& allocation, const Past& now, const Clock& clock) {
    for (const Past& past : allocation.past) {
        const bool overlap = past.begin < now.end && now.begin < past.end;
        if (overlap && past.queue != now.queue && conflict(past.access, now.access) && !knows(clock, past))
            report(allocation, past, now);
    }
}

void remember(Allocation& allocation, Past now) {
    for (Past& past : allocation.past) {
        if (past.queue != now.queue || past.access != now.access || past.begin != now.begin || past.end != now.end)
            continue;
        past = std::move(now);
        return;
    }
    if (allocation.past.size() == remembered) allocation.past.erase(allocation.past.begin());
    allocation.past.push_back(std::move(now));
}

}  // namespace

void watch(bool on) noexcept { watching.store(on, std::memory_order_relaxed); }
bool is_watching() noexcept { return watching.load(std::memory_order_relaxed); }

std::shared_ptr<const Clock> clock_of(Queue& queue, const std::vector<Point>& after) {
    if (!is_watching()) return nullptr;
    auto clock = std::make_shared<Clock>(host);
    if (queue.clock) join(*clock, *queue.clock);
    for (const Point& point : after) {
        if (point.clock) join(*clock, *point.clock);
    }
    (*clock)[queue.id] = queue.submitted + 1;
    queue.clock = clock;
    return clock;
}

void host_saw(const Point& point) {
    if (point.clock && is_watching()) join(host, *point.clock);
}

void begin() {
    for (Ranges& ranges : touched()) ranges.clear();
}

void touch(std::uint64_t address, std::size_t size, ptx::Access access) {
    if (!is_watching()) return;
    Ranges& ranges = touched()[static_cast<std::size_t>(access)];
    std::uint64_t begin = address;
    std::uint64_t end = address + size;
    auto next = ranges.upper_bound(begin);
    if (next != ranges.begin() && std::prev(next)->second >= begin) {
        --next;
        begin = next->first;
    }
    while (next != ranges.end() && next->first <= end) {  // swallow what it meets
        end = std::max(end, next->second);
        next = ranges.erase(next);
    }
    ranges.emplace(begin, end);
}

void end(const Queue& queue, const Work& work) {
    if (!work.clock) return;
    const std::array<Ranges, 3>& ranges = touched();
    for (std::size_t kind = 0; kind < ranges.size(); ++kind) {
        for (const auto& [begin, end] : ranges[kind]) {
            Allocation* const allocation = find_allocation(begin, 1);
            if (allocation == nullptr) continue;  // plain host memory
            Past now{begin,
                     std::min(end, allocation->begin + allocation->size),
                     static_cast<ptx::Access>(kind),
                     queue.id,
                     queue.completed + 1,
                     work.what};
            compare(*allocation, now, *work.clock);
            remember(*allocation, std::move(now));
        }
    }
}

}  // namespace ftcuda::sim::races
