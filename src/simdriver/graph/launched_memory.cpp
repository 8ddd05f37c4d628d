#include "launched_memory.hpp"

#include "../checkers/memory_order.hpp"
#include "../checkers/races.hpp"
#include "../memory/graph_memory.hpp"
#include "../memory/memory.hpp"

namespace ftcuda::sim {

namespace {

template <class What, class Visit>
void for_each(const Graph& graph, Visit visit) {
    for (const std::shared_ptr<Node>& node : graph.nodes) {
        if (const auto* const what = std::get_if<What>(&node->operation.what)) visit(*what);
    }
}

}  // namespace

CUresult map_memory(const Executable& executable) {
    CUresult result = CUDA_SUCCESS;
    for_each<AllocOperation>(*executable.graph, [&](const AllocOperation& allocation) {
        if (result == CUDA_SUCCESS) result = map(*find_graph_memory(allocation.parameters.dptr));
    });
    return result;
}

CUresult LaunchedMemory::begin(const Executable& executable, const Layout& layout) {
    const Graph& graph = *executable.graph;
    const bool frees_itself = (executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    bool is_valid = true;
    std::vector<Allocation*> allocated;
    for_each<AllocOperation>(graph, [&](const AllocOperation& each) {
        allocated.push_back(find_graph_memory(each.parameters.dptr));
        is_valid = is_valid && (frees_itself || !allocated.back()->of_graph->is_allocated);
    });
    for_each<FreeOperation>(graph, [&](const FreeOperation& each) {
        const Allocation* const memory = find_graph_memory(each.memory);
        is_valid =
            is_valid && memory != nullptr && (memory->of_graph->is_freed_inside || memory->of_graph->is_allocated);
        freed_.push_back(each.memory);
    });
    if (!is_valid) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = map_memory(executable); result != CUDA_SUCCESS) return result;
    memory_order::check(layout.steps);
    for (Allocation* const memory : allocated) memory->of_graph->is_allocated = true;
    return CUDA_SUCCESS;
}

void LaunchedMemory::end() {
    for (const Use& memory : freed_) find_graph_memory(memory)->of_graph->is_allocated = false;
}

Work prepare(const AllocOperation& operation) {
    const CUdeviceptr begin = operation.parameters.dptr;
    Work work;
    work.what = "an allocation";
    begin_touch(begin, work.touches);
    work.run = [begin, size = operation.parameters.bytesize] {
        races::touch(begin, size, ptx::Access::write);  // also what a launch before has left there is gone
        const Guard inside(driver_state().mutex);
        set_reachable(begin, size);
        return CUDA_SUCCESS;
    };
    return work;
}

Work prepare(const FreeOperation& operation) {
    const CUdeviceptr begin = operation.memory.begin;
    Work work;
    work.what = "a free";
    work.run = [begin, size = find_graph_memory(begin)->size] {
        races::touch(begin, size, ptx::Access::write);
        return CUDA_SUCCESS;
    };
    work.finish = [begin] { graph_memory_is_free(begin); };
    return work;
}

}  // namespace ftcuda::sim
