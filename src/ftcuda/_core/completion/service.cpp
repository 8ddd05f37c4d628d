#include "service.hpp"

#include "../../_driver/schedule.hpp"
#include "../sync/fork.hpp"

#include <exception>
#include <thread>

namespace ftcuda::core {

void Service::start() {
    const Lock lock(mutex_);
    if (started_) return;
    std::thread([this] { run(); }).detach();
    started_ = true;
}

void Service::want() noexcept {
#ifdef FTCUDA_SCHEDULE_POINTS
    if (driver::schedule::is_on()) return;
#endif
    if (is_forked()) return;
    try {
        start();
    } catch (const std::exception&) {
        return;  // the next one to want it tries again
    }
    const Lock lock(mutex_);
    wanted_.store(true);
    changed_.notify_all();
}

void Service::run() noexcept {
    for (;;) {
        {
            const Lock lock(mutex_);
            while (!wanted_.load()) changed_.wait(mutex_);
        }
        std::this_thread::sleep_for(pause_);
        wanted_.store(false);
        if (turn()) wanted_.store(true);
    }
}

}  // namespace ftcuda::core
