#include "conditional_run.hpp"

#include "../checkers/races.hpp"
#include "../schedule/scheduler.hpp"
#include "../timeline/timeline.hpp"
#include "conditional.hpp"
#include "layout.hpp"

#include <algorithm>
#include <limits>
#include <thread>

namespace ftcuda::sim {

namespace {

// Rounds of a WHILE after which it may be one that waits for the host, so that no clock waits for its end.
constexpr unsigned long_loop = 256;

const std::shared_ptr<Queue>& take_lane(Launching& launching) {
    std::vector<std::shared_ptr<Queue>>& lanes = launching.executable.body_lanes;
    if (lanes.size() == launching.body_lanes) lanes.push_back(std::make_shared<Queue>());
    const std::shared_ptr<Queue>& queue = lanes[launching.body_lanes++];
    queue->context = launching.context;
    return queue;
}

// Also the workers of the bodies must not keep a clock waiting.
std::function<CUresult()> long_running(std::function<CUresult()> run) {
    return [run = std::move(run)] {
        scheduler::set_runs_long(true);
        return run ? run() : CUDA_SUCCESS;
    };
}

}  // namespace

ConditionalRun::ConditionalRun(const ConditionalOperation& operation, Launching& launching)
    : context_(launching.context), conditions_(launching.executable.graph->conditions), handle_(operation.handle),
      type_(operation.type) {
    for (const std::shared_ptr<Graph>& body : operation.bodies) bodies_.push_back(prepare_body(*body, launching));
}

ConditionalRun::Body ConditionalRun::prepare_body(const Graph& graph, Launching& launching) {
    const Layout layout = lay_out(graph);
    Body body;
    body.last = layout.last;
    for (std::size_t lane = 0; lane < layout.lanes; ++lane)
        body.lanes.push_back({take_lane(launching), driver_state().next_stream_id++});
    all_lanes_.insert(all_lanes_.end(), body.lanes.begin(), body.lanes.end());
    for (const Step& step : layout.steps) {
        Prepared prepared = launching.prepare(*step.node, launching);
        touches_.insert(touches_.end(), prepared.work.touches.begin(), prepared.work.touches.end());
        prepared.work.touches.clear();
        if (prepared.conditional) {
            const std::vector<Lane>& inner = prepared.conditional->all_lanes_;
            all_lanes_.insert(all_lanes_.end(), inner.begin(), inner.end());
        }
        body.steps.push_back({std::move(prepared), step.after, step.lane});
    }
    return body;
}

Work ConditionalRun::as_work() {
    Work work;
    work.what = "a conditional node";
    work.touches = std::move(touches_);
    work.run = [self = shared_from_this()] { return self->run(); };
    if (!races::is_watching()) return work;
    auto bodies = std::make_shared<Clock>();  // whoever comes after it comes after all that its lanes do in this launch
    for (const Lane& lane : all_lanes_) (*bodies)[lane.id] = std::numeric_limits<std::uint64_t>::max();
    work.after.push_back({nullptr, 0, std::move(bodies)});
    return work;
}

const ConditionalRun::Body* ConditionalRun::chosen() const {
    const Condition* const condition = find_condition(*conditions_, handle_);
    const unsigned value = condition != nullptr ? condition->value : 0;
    std::size_t index = value;
    if (type_ != CU_GRAPH_COND_TYPE_SWITCH) index = value != 0 ? 0 : 1;
    return index < bodies_.size() ? &bodies_[index] : nullptr;
}

CUresult ConditionalRun::run() {
    Guard lock(driver_state().mutex);
    for (const Body& body : bodies_) {
        for (const Lane& lane : body.lanes) lane.queue->id = lane.id;
    }
    for (unsigned round = 1; context_->failure == CUDA_SUCCESS; ++round) {
        const Body* const body = chosen();
        if (body == nullptr) break;
        play(lock, *body);
        if (type_ != CU_GRAPH_COND_TYPE_WHILE) break;
        lock.unlock();
        if (round == long_loop) scheduler::set_runs_long(runs_long_ = true);
        std::this_thread::yield();
        lock.lock();
        scheduler::point(lock, "round of a conditional node");
    }
    if (runs_long_) end_long_loop(lock);
    return CUDA_SUCCESS;
}

void ConditionalRun::end_long_loop(Guard& lock) {
    for (const Lane& lane : bodies_.front().lanes) {
        Work work;
        work.run = [] {
            scheduler::set_runs_long(false);
            return CUDA_SUCCESS;
        };
        enqueue(lane.queue, std::move(work));
    }
    runs_long_ = false;  // the node may be nested in another WHILE
    lock.unlock();
    scheduler::set_runs_long(false);
    lock.lock();
}

std::shared_ptr<const Clock> ConditionalRun::clock_of_round(const Clock& before) const {
    auto clock = std::make_shared<Clock>(before);
    for (const Lane& lane : all_lanes_) (*clock)[lane.id] = lane.queue->submitted;
    return clock;
}

void ConditionalRun::play(Guard& lock, const Body& body) {
    if (clock_) clock_ = clock_of_round(*clock_);
    for (const Lane& lane : body.lanes) lane.queue->clock.reset();  // what it knew, the round does
    std::vector<Point> points;
    for (const BodyStep& step : body.steps) {
        Work work = step.prepared.work;
        for (const std::size_t before : step.after) work.after.push_back(points[before]);
        if (step.after.empty()) work.after.push_back({nullptr, 0, clock_});
        if (runs_long_) work.run = long_running(std::move(work.run));
        points.push_back(enqueue(body.lanes[step.lane].queue, std::move(work)));
        if (step.prepared.conditional) step.prepared.conditional->submitted(points.back().clock);
    }
    scheduler::wait_until(lock, driver_state().progress, "body of a conditional node", [&] {
        return context_->failure != CUDA_SUCCESS ||
               std::all_of(body.last.begin(), body.last.end(),
                           [&](std::size_t step) { return points[step].reached(); });
    });
}

}  // namespace ftcuda::sim
