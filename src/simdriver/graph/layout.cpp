#include "layout.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace ftcuda::sim {

namespace {

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

// Which queue each step goes to. A step follows one of those that it depends on in its queue if none did so before; no
// queue orders what the graph does not.
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

    std::size_t count() const noexcept { return ends_.size(); }

private:
    std::size_t take(std::size_t lane) {
        ends_[lane] = next_++;
        return lane;
    }

    std::vector<std::optional<std::size_t>> ends_{std::nullopt};  // the latest step in each
    std::size_t next_ = 0;
};

}  // namespace

Layout lay_out(const Graph& graph) {
    Layout layout;
    layout.last = lay_out(graph, {}, layout.steps);
    Lanes lanes;
    for (Step& step : layout.steps) step.lane = lanes.lane_of(step);
    layout.lanes = lanes.count();
    return layout;
}

}  // namespace ftcuda::sim
