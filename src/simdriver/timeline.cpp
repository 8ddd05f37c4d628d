// Queues of work and the threads that run them.
#include "world.hpp"

#include <chrono>
#include <thread>

namespace ftcuda::sim {

bool Point::reached() const noexcept {
    return queue == nullptr || queue->completed >= position;
}

double now_milliseconds() noexcept {
    static const auto start = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

namespace {

bool all_reached(const std::vector<Point>& points) noexcept {
    for (const Point& point : points) {
        if (!point.reached()) return false;
    }
    return true;
}

void work_through(const std::shared_ptr<Queue>& queue) {
    World& w = world();
    Guard lock(w.mutex);
    for (;;) {
        while (queue->waiting.empty()) {
            if (queue->closed) return;
            queue->arrived.wait(lock);
        }
        while (w.held) w.progress.wait(lock);
        while (!all_reached(queue->waiting.front().after)) w.progress.wait(lock);
        if (w.held) continue;
        Work work = std::move(queue->waiting.front());
        queue->waiting.pop_front();
        if (queue->context->failure == CUDA_SUCCESS && work.run) {
            lock.unlock();
            const CUresult result = work.run();
            lock.lock();
            if (result != CUDA_SUCCESS && queue->context->failure == CUDA_SUCCESS) queue->context->failure = result;
        }
        end_touches(work.touches);
        ++queue->completed;
        w.progress.notify_all();
    }
}

}  // namespace

Point submit(Stream& stream, Work work) {
    if (stream.capture) {
        ++stream.capture->nodes;
        end_touches(work.touches);
        return {};
    }
    Context& context = *stream.context;
    Queue& queue = *stream.queue;
    const bool is_legacy = &stream == context.legacy.get();
    if (is_legacy) {
        for (const std::weak_ptr<Stream>& weak : context.streams) {
            const std::shared_ptr<Stream> other = weak.lock();
            if (other && (other->flags & CU_STREAM_NON_BLOCKING) == 0 && !other->capture) {
                work.after.push_back({other->queue, other->queue->submitted});
            }
        }
    } else if (context.legacy && (stream.flags & CU_STREAM_NON_BLOCKING) == 0) {
        work.after.push_back({context.legacy->queue, context.legacy->queue->submitted});
    }
    queue.waiting.push_back(std::move(work));
    ++queue.submitted;
    if (!queue.has_worker) {
        queue.has_worker = true;
        std::thread(work_through, stream.queue).detach();
    }
    queue.arrived.notify_one();
    return {stream.queue, queue.submitted};
}

CUresult wait_for(Guard& lock, const Context& context, const Point& point) {
    while (!point.reached() && context.failure == CUDA_SUCCESS) world().progress.wait(lock);
    return context.failure;
}

}  // namespace ftcuda::sim
