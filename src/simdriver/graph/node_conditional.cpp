// Exports: handles of conditions, and the nodes that read them.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../state/profile.hpp"
#include "conditional.hpp"
#include "kinds.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

namespace {

constexpr int with_else_and_switch = 12080;  // the first driver that has more than one body for a node

bool can_have(int type, unsigned bodies) {
    const bool several = profile()->driver_version >= with_else_and_switch;
    switch (type) {
    case CU_GRAPH_COND_TYPE_IF: return bodies == 1 || (bodies == 2 && several);
    case CU_GRAPH_COND_TYPE_WHILE: return bodies == 1;
    case CU_GRAPH_COND_TYPE_SWITCH: return bodies != 0 && several;
    default: return false;
    }
}

// Of a context that must be named: the current one does not stand for it.
CUresult find_named_context(CUcontext handle, Context*& context) {
    return handle == nullptr ? CUDA_ERROR_INVALID_CONTEXT : find_context(handle, context);
}

CUresult create_handle(CUgraphConditionalHandle* handle, CUgraph graph_handle, CUcontext context_handle,
                       unsigned default_value, unsigned flags) {
    const Guard lock(driver_state().mutex);
    if (handle == nullptr || flags > CU_GRAPH_COND_ASSIGN_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(graph_handle, graph); result != CUDA_SUCCESS) return result;
    Context* context = nullptr;
    if (const CUresult result = find_named_context(context_handle, context); result != CUDA_SUCCESS) return result;
    Conditions& conditions = *root_of(*graph).conditions;
    conditions.push_back({context, default_value, flags == CU_GRAPH_COND_ASSIGN_DEFAULT, 0});
    *handle = conditions.size();
    return CUDA_SUCCESS;
}

}  // namespace

CUresult describe_conditional(CUDA_CONDITIONAL_NODE_PARAMS& given, CUgraph graph_handle, Operation& operation) {
    std::shared_ptr<Graph> graph;
    if (const CUresult result = find_graph(graph_handle, graph); result != CUDA_SUCCESS) return result;
    if (!can_have(given.type, given.size)) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    if (const CUresult result = find_named_context(given.ctx, context); result != CUDA_SUCCESS) return result;
    const Graph& root = root_of(*graph);
    Condition* const condition = find_condition(*root.conditions, given.handle);
    if (condition == nullptr || condition->context != context || is_read(root, given.handle))
        return CUDA_ERROR_INVALID_VALUE;
    ConditionalOperation made;
    made.handle = given.handle;
    made.type = given.type;
    made.context = context;
    for (unsigned index = 0; index < given.size; ++index) {
        made.bodies.push_back(make_graph());
        made.shown.push_back(made.bodies.back()->handle);
    }
    given.phGraph_out = made.shown.data();  // which stays where it is when the operation is moved
    operation.what = std::move(made);
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph,
                                                          CUcontext context, unsigned default_value, unsigned flags) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphConditionalHandleCreate);
    return create_handle(handle, graph, context, default_value, flags);
}

}  // namespace ftcuda::sim
