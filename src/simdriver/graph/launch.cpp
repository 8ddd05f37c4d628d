// Launches of executables: a graph's branches run beside each other, as streams do.
#include "../checkers/violations.hpp"
#include "../timeline/event.hpp"
#include "../timeline/timeline.hpp"
#include "conditional.hpp"
#include "conditional_run.hpp"
#include "executable.hpp"
#include "launched_memory.hpp"
#include "preparation.hpp"
#include "layout.hpp"

namespace ftcuda::sim {

namespace {

// The values that launches begin with, as they are said now, once it is the launch's turn.
Work begin_conditions(const std::shared_ptr<Conditions>& conditions) {
    Work work;
    std::vector<std::pair<CUgraphConditionalHandle, unsigned>> defaults;
    for (CUgraphConditionalHandle handle = 1; handle <= conditions->size(); ++handle) {
        const Condition& condition = *find_condition(*conditions, handle);
        if (condition.assigns_default) defaults.emplace_back(handle, condition.default_value);
    }
    if (defaults.empty()) return work;
    work.run = [] { return CUDA_SUCCESS; };
    work.finish = [conditions, defaults] {
        for (const auto& [handle, value] : defaults) {
            if (Condition* const condition = find_condition(*conditions, handle)) condition->value = value;
        }
    };
    return work;
}

SetCondition setter_of(const std::shared_ptr<Conditions>& conditions) {
    if (conditions->empty()) return {};
    return [conditions](std::uint64_t handle, std::uint32_t value) {
        const Guard lock(driver_state().mutex);
        if (Condition* const condition = find_condition(*conditions, handle)) {
            condition->value = value;
        } else {
            violation("cudaGraphSetConditional with a handle that the launched graph does not have");
        }
    };
}

const std::shared_ptr<Queue>& queue_of(Executable& executable, std::size_t lane, Context* context) {
    if (executable.lanes.size() < lane) {
        executable.lanes.push_back(std::make_shared<Queue>());
        executable.lanes.back()->id = driver_state().next_stream_id++;
    }
    const std::shared_ptr<Queue>& queue = executable.lanes[lane - 1];
    queue->context = context;
    return queue;
}

}  // namespace

CUresult launch(const std::shared_ptr<Executable>& executable, Stream& stream) {
    const Layout layout = lay_out(*executable->graph);
    LaunchedMemory memory;
    if (const CUresult result = memory.begin(*executable, layout); result != CUDA_SUCCESS) return result;
    const std::shared_ptr<Conditions>& conditions = executable->graph->conditions;
    Launching launching{*executable, stream.context, setter_of(conditions), prepare};
    Work begin = begin_conditions(conditions);
    begin.after.push_back(executable->last);
    const Point entry = submit(stream, std::move(begin));
    std::vector<Point> points;
    for (const Step& step : layout.steps) {
        auto [work, conditional] = prepare(*step.node, launching);
        for (const std::size_t before : step.after) work.after.push_back(points[before]);
        if (step.after.empty()) work.after.push_back(entry);
        points.push_back(step.lane == 0 ? submit(stream, std::move(work))
                                        : enqueue(queue_of(*executable, step.lane, stream.context), std::move(work)));
        if (conditional) conditional->submitted(points.back().clock);
        if (const auto* const record = std::get_if<RecordOperation>(&step.node->operation.what)) {
            record->event->capture.reset();
            record->event->point = points.back();
        }
    }
    Work end;
    for (const std::size_t step : layout.last) end.after.push_back(points[step]);
    end.let_go = [executable] {
        EndedObjects ended;
        const Guard lock(driver_state().mutex);
        --executable->in_flight;
        end_idle(*executable, ended);
    };
    ++executable->in_flight;
    executable->last = submit(stream, std::move(end));
    memory.end();
    return CUDA_SUCCESS;
}

}  // namespace ftcuda::sim
