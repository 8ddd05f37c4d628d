#include "graph_definition.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"

namespace ftcuda::core {

Status GraphDefinition::instantiate(unsigned flags, abi::CUgraphExec& executable) {
    const RelaxedCapture relaxed;
    return use([&](abi::CUgraph graph) { return driver::cu.cuGraphInstantiateWithFlags(&executable, graph, flags); });
}

std::vector<const CapturedLaunch*> GraphDefinition::launches() const {
    std::vector<const CapturedLaunch*> launches;
    for (const Ref<Shared>& note : operands_->notes())
        launches.push_back(static_cast<const CapturedLaunch*>(note.get()));  // nothing else is noted
    return launches;
}

Status GraphDefinition::print_dot(const char* path, unsigned flags) {
    if (!driver::cu.cuGraphDebugDotPrint) return Status(Reason::absent, Entry::cuGraphDebugDotPrint);
    return use([&](abi::CUgraph graph) { return driver::cu.cuGraphDebugDotPrint(graph, path, flags); });
}

GraphDefinition::~GraphDefinition() {
    if (!context_.may_destroy()) return;
    const RelaxedCapture relaxed;
    const Lock lock(graph_turn);
    deferred_errors::add(context_.observe(driver::cu.cuGraphDestroy(graph_)), "destroy", "graph");
}

}  // namespace ftcuda::core
