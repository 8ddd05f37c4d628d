#include "schedule.hpp"

#include "library.hpp"

#ifdef FTCUDA_SCHEDULE_POINTS

#include <atomic>

namespace ftcuda::driver::schedule {

namespace {

struct Scheduler {
    int (*is_on)() = nullptr;
    void (*point)(const char* where) = nullptr;
    int (*park)(const void* key, const char* where) = nullptr;
    int (*park_for_holder)(const void* key, const char* where) = nullptr;
    void (*unpark)(const void* key) = nullptr;
    void (*hold)(const void* key) = nullptr;
    void (*let_go)(const void* key) = nullptr;
    void* (*give_part)() = nullptr;
    void (*take_part)(void* part) = nullptr;
};

// Published once with release, when the driver is loaded; read with acquire.
std::atomic<const Scheduler*> scheduler{nullptr};

}  // namespace

void find(const Library& library) {
    static Scheduler found;
    found.is_on = reinterpret_cast<int (*)()>(library.symbol("ftcuda_schedule_is_on"));
    found.point = reinterpret_cast<void (*)(const char*)>(library.symbol("ftcuda_schedule_point"));
    found.park = reinterpret_cast<int (*)(const void*, const char*)>(library.symbol("ftcuda_schedule_park"));
    found.park_for_holder =
        reinterpret_cast<int (*)(const void*, const char*)>(library.symbol("ftcuda_schedule_park_for_holder"));
    found.unpark = reinterpret_cast<void (*)(const void*)>(library.symbol("ftcuda_schedule_unpark"));
    found.hold = reinterpret_cast<void (*)(const void*)>(library.symbol("ftcuda_schedule_hold"));
    found.let_go = reinterpret_cast<void (*)(const void*)>(library.symbol("ftcuda_schedule_let_go"));
    found.give_part = reinterpret_cast<void* (*)()>(library.symbol("ftcuda_schedule_give_part"));
    found.take_part = reinterpret_cast<void (*)(void*)>(library.symbol("ftcuda_schedule_take_part"));
    const bool complete = found.is_on != nullptr && found.point != nullptr && found.park != nullptr &&
                          found.park_for_holder != nullptr && found.unpark != nullptr && found.hold != nullptr &&
                          found.let_go != nullptr && found.give_part != nullptr && found.take_part != nullptr;
    if (complete) scheduler.store(&found, std::memory_order_release);
}

void point(const char* where) noexcept {
    if (const Scheduler* const found = scheduler.load(std::memory_order_acquire)) found->point(where);
}

bool is_on() noexcept {
    const Scheduler* const found = scheduler.load(std::memory_order_acquire);
    return found != nullptr && found->is_on() != 0;
}

bool park(const void* key, const char* where) noexcept {
    const Scheduler* const found = scheduler.load(std::memory_order_acquire);
    return found != nullptr && found->park(key, where) != 0;
}

bool park_for_holder(const void* key, const char* where) noexcept {
    const Scheduler* const found = scheduler.load(std::memory_order_acquire);
    return found != nullptr && found->park_for_holder(key, where) != 0;
}

void unpark(const void* key) noexcept {
    if (const Scheduler* const found = scheduler.load(std::memory_order_acquire)) found->unpark(key);
}

void hold(const void* key) noexcept {
    if (const Scheduler* const found = scheduler.load(std::memory_order_acquire)) found->hold(key);
}

void let_go(const void* key) noexcept {
    if (const Scheduler* const found = scheduler.load(std::memory_order_acquire)) found->let_go(key);
}

void* give_part() noexcept {
    const Scheduler* const found = scheduler.load(std::memory_order_acquire);
    return found != nullptr ? found->give_part() : nullptr;
}

void take_part(void* part) noexcept {
    const Scheduler* const found = scheduler.load(std::memory_order_acquire);
    if (found != nullptr && part != nullptr) found->take_part(part);
}

}  // namespace ftcuda::driver::schedule

#else

namespace ftcuda::driver::schedule {

std::atomic<void (*)(int change)> count_locks{nullptr};

void find(const Library& library) {
    count_locks.store(reinterpret_cast<void (*)(int)>(library.symbol("ftcuda_schedule_count_locks")),
                      std::memory_order_release);
}

}  // namespace ftcuda::driver::schedule

#endif
