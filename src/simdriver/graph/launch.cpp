// Launches of executables: a graph's branches run beside each other, as streams do.
#include "../checkers/late_use.hpp"
#include "../code/launch.hpp"
#include "../memory/transfer.hpp"
#include "../timeline/event.hpp"
#include "../timeline/host_function.hpp"
#include "../timeline/timeline.hpp"
#include "executable.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace ftcuda::sim {

namespace {

// A node that does something, of the graph or of a child graph, behind others by their indices.
struct Step {
    Node* node = nullptr;
    std::vector<std::size_t> after;
};

void add_steps(std::vector<std::size_t>& to, const std::vector<std::size_t>& steps) {
    for (const std::size_t step : steps) {
        if (std::find(to.begin(), to.end(), step) == to.end()) to.push_back(step);
    }
}

// The graph's nodes behind `before`. Returns the last ones.
std::vector<std::size_t> lay_out(const Graph& graph, const std::vector<std::size_t>& before, std::vector<Step>& steps) {
    std::unordered_map<const Node*, std::vector<std::size_t>> ends;
    std::vector<std::size_t> last;
    for (Node* const node : in_order(graph)) {
        std::vector<std::size_t> after = node->dependencies.empty() ? before : std::vector<std::size_t>{};
        for (const Node* const dependency : node->dependencies) add_steps(after, ends[dependency]);
        std::vector<std::size_t>& end = ends[node];
        if (const auto* const child = std::get_if<ChildOperation>(&node->operation.what)) {
            end = lay_out(*child->graph, after, steps);
            if (end.empty()) end = after;
        } else {
            end = {steps.size()};
            steps.push_back({node, std::move(after)});
        }
        if (node->dependents.empty()) add_steps(last, end);
    }
    return last;
}

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

// Which queue each step goes to: the stream's, 0, or one of the executable's own. A step follows one of those that it
// depends on in its queue if none did so before; no queue orders what the graph does not.
class Lanes {
public:
    std::size_t lane_of(const Step& step) {
        for (std::size_t lane = 0; lane < ends_.size(); ++lane) {
            const bool follows = ends_[lane]
                                     ? std::find(step.after.begin(), step.after.end(), *ends_[lane]) != step.after.end()
                                     : step.after.empty();
            if (follows) return take(lane);
        }
        ends_.emplace_back();
        return take(ends_.size() - 1);
    }

private:
    std::size_t take(std::size_t lane) {
        ends_[lane] = next_++;
        return lane;
    }

    std::vector<std::optional<std::size_t>> ends_{std::nullopt};  // the latest step in each
    std::size_t next_ = 0;
};

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
    std::vector<Step> steps;
    const std::vector<std::size_t> last = lay_out(*executable->graph, {}, steps);
    Work begin;
    begin.after.push_back(executable->last);
    const Point entry = submit(stream, std::move(begin));
    std::vector<Point> points;
    Lanes lanes;
    for (const Step& step : steps) {
        Work work = prepare(*step.node);
        for (const std::size_t before : step.after) work.after.push_back(points[before]);
        if (step.after.empty()) work.after.push_back(entry);
        const std::size_t lane = lanes.lane_of(step);
        points.push_back(lane == 0 ? submit(stream, std::move(work))
                                   : enqueue(queue_of(*executable, lane, stream.context), std::move(work)));
        if (const auto* const record = std::get_if<RecordOperation>(&step.node->operation.what)) {
            record->event->capture.reset();
            record->event->point = points.back();
        }
    }
    Work end;
    for (const std::size_t step : last) end.after.push_back(points[step]);
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
