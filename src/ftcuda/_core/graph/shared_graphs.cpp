#include "shared_graphs.hpp"

#include "../../_driver/table.hpp"
#include "../completion/deferred_release.hpp"
#include "../device/deferred_errors.hpp"

#include <algorithm>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

bool SharedGraphs::has(CUgraph graph) const noexcept {
    return std::find(graphs_.begin(), graphs_.end(), graph) != graphs_.end();
}

Status SharedGraphs::add(CUgraph graph, const All& all) {
    graphs_.reserve(graphs_.size() + 1);
    Objects made;
    made.reserve(all.size());
    Status status;
    for (const auto& [kept, objects] : all) {
        objects->reserve(graphs_.size() + 1);
        status = give(graph, kept, made);
        if (!status.ok()) break;
    }
    if (!status.ok()) {
        for (CUuserObject const each : made) take_back(graph, each);
        return status;
    }
    for (std::size_t index = 0; index < all.size(); ++index) {
        Objects& objects = *all[index].second;
        objects.resize(graphs_.size());  // of those that came when it kept nothing
        objects.push_back(made[index]);
    }
    graphs_.push_back(graph);
    return {};
}

std::vector<CUgraph> SharedGraphs::end(const All& all) noexcept {
    for (const auto& [kept, objects] : all) take_back(*objects);
    graphs_.erase(std::remove(graphs_.begin(), graphs_.end(), CUgraph{}), graphs_.end());
    return std::exchange(graphs_, {});
}

void SharedGraphs::remove(CUgraph graph) noexcept { std::replace(graphs_.begin(), graphs_.end(), graph, CUgraph{}); }

Status SharedGraphs::give(const Kept& kept, Objects& objects) {
    objects.reserve(graphs_.size());
    for (CUgraph const each : graphs_) {
        if (const Status status = give(each, kept, objects); !status.ok()) return status;
    }
    return {};
}

void SharedGraphs::take_back(Objects& objects) noexcept {
    for (std::size_t index = 0; index < objects.size(); ++index) take_back(graphs_[index], objects[index]);
    objects.clear();
}

Status SharedGraphs::give(CUgraph graph, const Kept& kept, Objects& objects) {
    CUuserObject object = nullptr;
    Status status;
    if (graph != nullptr && !kept.empty()) {
        deferred_release::Retention retention = deferred_release::retain(nullptr);
        retention->further = kept;
        status = deferred_release::release_with_graph(context_, graph, std::move(retention), false, object);
    }
    if (status.ok()) objects.push_back(object);
    return status;
}

void SharedGraphs::take_back(CUgraph graph, CUuserObject object) noexcept {
    if (graph == nullptr || object == nullptr) return;
    const Status status = context_.observe(cu.cuGraphReleaseUserObject(graph, object, 1));
    deferred_errors::add(status, "release what was kept by", "graph");
}

}  // namespace ftcuda::core
