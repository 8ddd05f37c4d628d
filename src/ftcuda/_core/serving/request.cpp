#include "request.hpp"

#include "../../_driver/schedule.hpp"
#include "../sync/may_wait.hpp"
#include "../sync/word.hpp"

namespace ftcuda::core::serving {

namespace {

constexpr std::chrono::milliseconds longest_nap{10};  // between two questions whether the wait is interrupted
constexpr int looks = 200;                            // before it sleeps: most answers take some microseconds

}  // namespace

Request::Told* Request::nobody_more() noexcept {
    static Told closed{nullptr, nullptr};
    return &closed;
}

Request::~Request() {
    if (Shared* const attached = attached_.load(std::memory_order_acquire)) attached->release();
    Told* each = told_.load(std::memory_order_acquire);
    if (each == nobody_more()) return;
    while (each != nullptr) delete std::exchange(each, each->next);
}

bool Request::claim() noexcept {
    Word word = word_.load(std::memory_order_relaxed);
    do {
        if ((word & states) != pending) return false;
    } while (!word_.compare_exchange_weak(word, (word & has_sleepers) | ending, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    return true;
}

void Request::publish(Word how, Status status) noexcept {
    status_ = status;
    FTCUDA_SCHEDULE_POINT("end a request");
    const Word before = word_.exchange(how, std::memory_order_acq_rel);
    Told* latest = told_.exchange(nobody_more(), std::memory_order_acq_rel);
    Told* each = nullptr;  // in the order in which they came
    while (latest != nullptr) each = std::exchange(latest, std::exchange(latest->next, each));
    while (each != nullptr) {
        const std::unique_ptr<Told> mine(std::exchange(each, each->next));
        mine->waiter->over({});
    }
    if ((before & has_sleepers) != 0) word::wake(word_);
}

Status Request::wait(const Limit& limit) noexcept {
    if (const Status status = may_wait(); !status.ok()) return status;
    driver::clock::Moment now = driver::clock::look();
    const auto end = limit::deadline(now.time, limit.seconds);
    for (int look = 0;; ++look) {
        Word word = word_.load(std::memory_order_acquire);
        if ((word & states) >= done) return status_;
        if (look < looks) {
            FTCUDA_SCHEDULE_POINT("look at a request");
            continue;
        }
        now = driver::clock::look();
        if (now.time >= end) return Reason::timed_out;
        if (limit.is_interrupted != nullptr && limit.is_interrupted()) return Reason::interrupted;
        if ((word & has_sleepers) == 0) {
            if (!word_.compare_exchange_strong(word, word | has_sleepers, std::memory_order_relaxed)) continue;
            word |= has_sleepers;
        }
        const auto left = std::min<std::chrono::steady_clock::duration>(end - now.time, longest_nap);
        word::wait(word_, word, std::chrono::ceil<std::chrono::microseconds>(left));
    }
}

void Request::tell(std::unique_ptr<Waiter> waiter) {
    std::unique_ptr<Told> mine(new Told{std::move(waiter), told_.load(std::memory_order_acquire)});
    for (;;) {
        if (mine->next == nobody_more()) {
            mine->waiter->over({});
            return;
        }
        if (told_.compare_exchange_weak(mine->next, mine.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
            mine.release();
            return;
        }
    }
}

}  // namespace ftcuda::core::serving
