// Launches of executables: a graph's branches run beside each other, as streams do.
#include "../checkers/late_use.hpp"
#include "../code/launch.hpp"
#include "../memory/transfer.hpp"
#include "../timeline/event.hpp"
#include "../timeline/host_function.hpp"
#include "../timeline/timeline.hpp"
#include "executable.hpp"
#include "layout.hpp"

namespace ftcuda::sim {

namespace {

struct Prepare {
    Work operator()(const NoOperation&) const { return {}; }
    Work operator()(const ChildOperation&) const { return {}; }  // its nodes are steps
    Work operator()(const KernelOperation& kernel) const { return prepare(kernel); }
    Work operator()(const CopyOperation& copy) const { return prepare(copy, Reads::when_run); }
    Work operator()(const FillOperation& fill) const { return prepare(fill); }
    Work operator()(const HostOperation& host) const { return prepare_host(host); }
    Work operator()(const RecordOperation& record) const { return prepare_record(*record.event); }
    Work operator()(const WaitOperation& wait) const {
        Work work;
        work.after.push_back(wait.event->point);
        return work;
    }
};

Work prepare(const Node& node) {
    if (!node.is_enabled) return {};
    late_use::check_again(node.operation.uses);
    return std::visit(Prepare{}, node.operation.what);
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

void launch(const std::shared_ptr<Executable>& executable, Stream& stream) {
    const Layout layout = lay_out(*executable->graph);
    Work begin;
    begin.after.push_back(executable->last);
    const Point entry = submit(stream, std::move(begin));
    std::vector<Point> points;
    for (const Step& step : layout.steps) {
        Work work = prepare(*step.node);
        for (const std::size_t before : step.after) work.after.push_back(points[before]);
        if (step.after.empty()) work.after.push_back(entry);
        points.push_back(step.lane == 0 ? submit(stream, std::move(work))
                                   : enqueue(queue_of(*executable, step.lane, stream.context), std::move(work)));
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
}

}  // namespace ftcuda::sim
