#include "timeline.hpp"

#include "../checkers/early_free.hpp"
#include "../checkers/races.hpp"
#include "../schedule/scheduler.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

namespace ftcuda::sim {

namespace {

bool all_reached(const std::vector<Point>& points) noexcept {
    for (const Point& point : points) {
        if (!point.reached()) return false;
    }
    return true;
}

void work_through(const std::shared_ptr<Queue>& queue, const std::shared_ptr<scheduler::Thread>& me) {
    DriverState& state = driver_state();
    Guard lock(state.mutex);
    scheduler::adopt(lock, me);
    for (;;) {
        scheduler::wait_until(lock, queue->arrived, "idle", [&] { return !queue->waiting.empty() || queue->closed; });
        if (queue->waiting.empty()) break;
        scheduler::wait_until(lock, state.progress, "before work",
                              [&] { return !state.held && all_reached(queue->waiting.front().after); });
        if (queue->waiting.front().takes != 0) {
            const clock::Nanoseconds end = clock::after(clock::of_work(), queue->waiting.front().takes);
            scheduler::wait_until(
                lock, state.progress, "delay",
                [&] {
                    return !clock::is_simulated() || clock::of_work() >= end || queue->context->failure != CUDA_SUCCESS;
                },
                end);
        }
        Work work = std::move(queue->waiting.front());
        queue->waiting.pop_front();
        if (queue->context->failure == CUDA_SUCCESS && work.run) {
            lock.unlock();
            races::begin();
            const CUresult result = work.run();
            lock.lock();
            races::end(*queue, work);
            if (work.finish) work.finish();
            if (result != CUDA_SUCCESS && queue->context->failure == CUDA_SUCCESS) queue->context->failure = result;
        }
        early_free::end(work.touches);
        if (work.let_go) {
            lock.unlock();
            work.let_go();
            lock.lock();
        }
        ++queue->completed;
        state.progress.notify_all();
    }
    scheduler::remove(lock, me);
}

// Starts the thread that runs a queue's work. Without one no work of its context could end any more: the context fails.
void start_worker(const std::shared_ptr<Queue>& queue) {
    const std::shared_ptr<scheduler::Thread> worker = scheduler::add_worker();
    try {
        std::thread(work_through, queue, worker).detach();
        queue->has_worker = true;
    } catch (const std::system_error& error) {
        scheduler::withdraw(worker);
        Context& context = *queue->context;
        if (context.failure == CUDA_SUCCESS) context.failure = CUDA_ERROR_LAUNCH_FAILED;
        driver_state().last_fault = std::string("no thread for the work of a stream: ") + error.what();
        driver_state().progress.notify_all();
    }
}

}  // namespace

Point submit(Stream& stream, Work work) {
    if (stream.capture) {
        early_free::end(work.touches);
        return {};
    }
    Context& context = *stream.context;
    const bool is_legacy = &stream == context.legacy.get();
    if (is_legacy) {
        for (const std::weak_ptr<Stream>& weak : context.streams) {
            const std::shared_ptr<Stream> other = weak.lock();
            if (other && (other->flags & CU_STREAM_NON_BLOCKING) == 0 && !other->capture) {
                work.after.push_back(other->latest());
            }
        }
    } else if (context.legacy && (stream.flags & CU_STREAM_NON_BLOCKING) == 0) {
        work.after.push_back(context.legacy->latest());
    }
    return enqueue(stream.queue, std::move(work));
}

Point enqueue(const std::shared_ptr<Queue>& queue, Work work) {
    work.clock = races::clock_of(*queue, work.after);
    queue->waiting.push_back(std::move(work));
    ++queue->submitted;
    if (!queue->has_worker) start_worker(queue);
    queue->arrived.notify_one();
    return {queue, queue->submitted, queue->clock};
}

void retire_queue(const Stream& stream) {
    std::vector<Point>& lingering = stream.context->lingering;
    lingering.erase(
        std::remove_if(lingering.begin(), lingering.end(), [](const Point& point) { return point.reached(); }),
        lingering.end());
    lingering.push_back(stream.latest());
    stream.queue->closed = true;
    stream.queue->arrived.notify_one();
}

CUresult wait_for(Guard& lock, const Context& context, const Point& point) {
    scheduler::wait_until(lock, driver_state().progress, "waiting for work",
                          [&] { return point.reached() || context.failure != CUDA_SUCCESS; });
    if (context.failure == CUDA_SUCCESS) races::host_saw(point);
    return context.failure;
}

CUresult ask(const Point& point) {
    if (!point.reached()) return CUDA_ERROR_NOT_READY;
    races::host_saw(point);
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
