// Exports: nodes of whichever kind.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../memory/graph_memory.hpp"
#include "../timeline/ended_objects.hpp"
#include "executable_nodes.hpp"
#include "kinds.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

CUresult find_context(CUcontext handle, Context*& context) {
    if (handle == nullptr) return current(context);
    const std::shared_ptr<Context> found = driver_state().context_handles.find(handle);
    if (!found || found->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    context = found.get();
    return context->failure;
}

CUresult describe(const CUgraphNodeParams* given, Operation& operation) {
    if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMSET_NODE_PARAMS_v2& fill = given->memset;
    const CUDA_MEMSET_NODE_PARAMS shape{fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
    switch (given->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return describe_kernel(&given->kernel, operation);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return describe_copy(&given->memcpy.copyParams, given->memcpy.copyCtx, operation);
    case CU_GRAPH_NODE_TYPE_MEMSET: return describe_fill(&shape, fill.ctx, operation);
    case CU_GRAPH_NODE_TYPE_HOST: return describe_host(&given->host, operation);
    case CU_GRAPH_NODE_TYPE_GRAPH: return describe_child(given->graph.graph, operation);
    case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return describe_wait(given->eventWait.event, operation);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return describe_record(given->eventRecord.event, operation);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

namespace {

CUresult describe_in(CUgraph handle, const Graph& graph, CUgraphNodeParams* given, Operation& operation) {
    if (given != nullptr && given->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return describe_conditional(given->conditional, handle, operation);
    if (given != nullptr && given->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return describe_allocation(&given->alloc, graph, operation);
    if (given != nullptr && given->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return describe_free(given->free.dptr, graph, operation);
    return describe(given, operation);
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuGraphAddNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                          std::size_t count, CUgraphNodeParams* parameters) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddNode);
    return add(made, graph, dependencies, count,
               [=](const Graph& in, Operation& operation) { return describe_in(graph, in, parameters, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                             const CUgraphEdgeData* edges, std::size_t count,
                                             CUgraphNodeParams* parameters) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddNode_v2);
    if (const CUresult result = check_edges(edges, count); result != CUDA_SUCCESS) return result;
    return add(made, graph, dependencies, count,
               [=](const Graph& in, Operation& operation) { return describe_in(graph, in, parameters, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams* parameters) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphNodeSetParams);
    EndedObjects ended;
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Node> node;
    if (const CUresult result = find_node(handle, node); result != CUDA_SUCCESS) return result;
    if (parameters == nullptr || parameters->type != node->operation.type()) return CUDA_ERROR_INVALID_VALUE;
    if (parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_ERROR_NOT_SUPPORTED;
    if (parameters->type == CU_GRAPH_NODE_TYPE_EMPTY) return CUDA_ERROR_INVALID_VALUE;
    Operation operation;
    if (const CUresult result = describe(parameters, operation); result != CUDA_SUCCESS) return result;
    for_each_graph_in(*node, [&](Graph& inner) { ended.graph_is_gone(inner); });
    take_over(node->operation, std::move(operation));
    for_each_graph_in(*node, [&](Graph& inner) { inner.parent = node->graph; });
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                    CUgraphNodeParams* parameters) {
    const Inside inside{executable, node};
    FTCUDA_SIM_ENTER(cuGraphExecNodeSetParams);
    const Guard lock(driver_state().mutex);
    Node* twin = nullptr;
    if (const CUresult result = find_twin(executable, node, twin); result != CUDA_SUCCESS) return result;
    if (parameters == nullptr || parameters->type != twin->operation.type()) return CUDA_ERROR_INVALID_VALUE;
    if (parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_ERROR_NOT_SUPPORTED;
    if (parameters->type == CU_GRAPH_NODE_TYPE_GRAPH) return replace_child(executable, node, parameters->graph.graph);
    Operation operation;
    if (const CUresult result = describe(parameters, operation); result != CUDA_SUCCESS) return result;
    return replace(*twin, std::move(operation));
}

}  // namespace ftcuda::sim
