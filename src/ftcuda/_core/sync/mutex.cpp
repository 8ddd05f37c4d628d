#include "mutex.hpp"

#include "../../_driver/clock.hpp"
#include "../../_driver/schedule.hpp"
#include "lock_order.hpp"

namespace ftcuda::core {

#ifdef FTCUDA_SCHEDULE_POINTS

namespace schedule = driver::schedule;

void Mutex::lock() {
    lock_order::check(rank_);
    schedule::point("lock");
    while (!mutex_.try_lock()) {
        if (schedule::park_for_holder(this, "locked")) continue;
        mutex_.lock();
        break;
    }
    schedule::hold(this);
    lock_order::remember(*this);
}

void Mutex::unlock() {
    lock_order::forget(*this);
    schedule::let_go(this);
    mutex_.unlock();
    schedule::unpark(this);
}

void Condition::wait(Mutex& mutex) {
    if (schedule::is_on()) {
        // A scheduled thread that lets go of the mutex keeps its turn until it parks: no notification comes between.
        mutex.unlock();
        schedule::park(this, "condition");
        mutex.lock();
        return;
    }
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
}

void Condition::wait_for(Mutex& mutex, std::chrono::microseconds time) {
    if (schedule::is_on()) {  // as in wait(): the turn is kept until the pause
        mutex.unlock();
        const driver::clock::Moment now = driver::clock::look();
        driver::clock::Wait().pause(now, now.time + time);
        mutex.lock();
        return;
    }
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(lock, time);
    lock.release();
}

void Condition::notify_all() noexcept {
    schedule::unpark(this);
    condition_.notify_all();
}

#else

void Mutex::lock() {
    lock_order::check(rank_);
    mutex_.lock();
    driver::schedule::note_lock(1);
    lock_order::remember(*this);
}

void Mutex::unlock() {
    lock_order::forget(*this);
    mutex_.unlock();
    driver::schedule::note_lock(-1);
}

void Condition::wait(Mutex& mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
}

void Condition::wait_for(Mutex& mutex, std::chrono::microseconds time) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(lock, time);
    lock.release();
}

void Condition::notify_all() noexcept { condition_.notify_all(); }

#endif

}  // namespace ftcuda::core
