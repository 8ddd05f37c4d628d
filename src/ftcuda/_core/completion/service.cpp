#include "service.hpp"

#include "../../_driver/schedule.hpp"
#include "../sync/fork.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

namespace ftcuda::core {

namespace {

using Clock = std::chrono::steady_clock;

#ifdef FTCUDA_SCHEDULE_POINTS
// A thread that a test schedules wakes nobody, because it would meet the service's lock where nobody schedules. So the
// service looks by itself.
constexpr std::chrono::milliseconds longest_sleep{10};
bool is_scheduled() noexcept { return driver::schedule::is_on(); }
#else
constexpr std::chrono::hours longest_sleep{1};
bool is_scheduled() noexcept { return false; }
#endif

}  // namespace

const std::shared_ptr<ServiceThread>& ServiceThread::common() {
    static const auto& only =
        *new auto(std::make_shared<ServiceThread>());  // never freed: daemon threads outlive main()
    return only;
}

void ServiceThread::add(Service& service) noexcept {
    service.next_ = first_.load(std::memory_order_relaxed);
    while (
        !first_.compare_exchange_weak(service.next_, &service, std::memory_order_release, std::memory_order_relaxed)) {
    }
}

void ServiceThread::start() {
    if (started_.load(std::memory_order_acquire)) return;
    const Lock lock(mutex_);
    if (started_.load(std::memory_order_relaxed)) return;
    std::thread([this] { run(); }).detach();
    started_.store(true, std::memory_order_release);
}

void ServiceThread::wake() noexcept {
    const Lock lock(mutex_);
    woken_ = true;
    changed_.notify_all();
}

void ServiceThread::run() noexcept {
    for (;;) {
        Time next = Time::max();
        for (Service* each = first_.load(std::memory_order_acquire); each != nullptr; each = each->next_) {
            next = std::min(next, each->take_turn());
        }
        sleep_until(next);
    }
}

void ServiceThread::sleep_until(Time time) noexcept {
    Time now = Clock::now();
    if (time <= now) {
        std::this_thread::yield();
        return;
    }
    const Lock lock(mutex_);
    if (!woken_) {
        const auto span = std::min<Clock::duration>(time - now, longest_sleep);
        changed_.wait_for(mutex_, std::chrono::duration_cast<std::chrono::microseconds>(span));
    }
    woken_ = false;
}

Service::Service(std::shared_ptr<ServiceThread> thread, Pause pause) noexcept
    : thread_(std::move(thread)), pause_(pause) {
    thread_->add(*this);
}

void Service::want() noexcept {
    if (is_forked()) return;
    if (is_scheduled()) {
        wanted_.store(true);
        return;
    }
    try {
        start();
    } catch (const std::exception&) {
        return;  // the next one to want it tries again
    }
    wanted_.store(true);
    thread_->wake();
}

ServiceThread::Time Service::take_turn() noexcept {
    if (wanted_.load()) due_ = std::min(due_, Clock::now() + pause_);
    if (due_ > Clock::now()) return due_;
    wanted_.store(false);
    const Pause pause = turn();
    due_ = pause == for_ever ? ServiceThread::Time::max() : Clock::now() + pause;
    return due_;
}

}  // namespace ftcuda::core
