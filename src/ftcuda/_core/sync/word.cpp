#include "word.hpp"

#include "../../_driver/clock.hpp"
#include "../../_driver/schedule.hpp"

#if defined(__linux__)
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(_WIN32)
#include <algorithm>
#include <windows.h>
#endif

namespace ftcuda::core::word {

namespace {

void sleep(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::microseconds time) noexcept {
#if defined(__linux__)
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    const std::chrono::nanoseconds rest = time - seconds;
    const timespec span{static_cast<time_t>(seconds.count()), static_cast<long>(rest.count())};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &span, nullptr, 0);
#elif defined(_WIN32)
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(time).count();
    std::uint32_t before = value;
    WaitOnAddress(const_cast<std::atomic<std::uint32_t>*>(&word), &before, sizeof before,
                  static_cast<DWORD>(std::min<long long>(milliseconds, 1000)));
#endif
}

}  // namespace

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the system waits for the word itself");

void wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::microseconds time) noexcept {
#ifdef FTCUDA_SCHEDULE_POINTS
    if (driver::schedule::is_on()) {
        driver::schedule::park(&word, "word");
        return;
    }
#endif
    sleep(word, value, time);
}

void wake(const std::atomic<std::uint32_t>& word) noexcept {
#ifdef FTCUDA_SCHEDULE_POINTS
    driver::schedule::unpark(&word);
#endif
#if defined(__linux__)
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#elif defined(_WIN32)
    WakeByAddressAll(const_cast<std::atomic<std::uint32_t>*>(&word));
#endif
}

}  // namespace ftcuda::core::word
