// Exports: nodes that record events and wait for them.
#include "../calls/gate.hpp"
#include "../checkers/graph_threads.hpp"
#include "../timeline/event.hpp"
#include "executable_nodes.hpp"
#include "kinds.hpp"
#include "nodes.hpp"

namespace ftcuda::sim {

using graph_threads::Inside;

namespace {

template <class What>
CUresult describe_event(CUevent given, Operation& operation) {
    std::shared_ptr<Event> event;
    if (const CUresult result = find_event(given, event); result != CUDA_SUCCESS) return result;
    operation.what = What{given, std::move(event)};
    return CUDA_SUCCESS;
}

}  // namespace

CUresult describe_record(CUevent given, Operation& operation) {
    return describe_event<RecordOperation>(given, operation);
}
CUresult describe_wait(CUevent given, Operation& operation) { return describe_event<WaitOperation>(given, operation); }

FTCUDA_SIM_EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                                     std::size_t count, CUevent event) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddEventRecordNode);
    return add(made, graph, dependencies, count,
               [=](Operation& operation) { return describe_record(event, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent* event) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphEventRecordNodeGetEvent);
    return ask<RecordOperation>(handle, [=](Node&, RecordOperation& record) { *event = record.handle; });
}

FTCUDA_SIM_EXPORT CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphEventRecordNodeSetEvent);
    return change<RecordOperation>(node, [=](Operation& operation) { return describe_record(event, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
    const Inside inside{executable, node};
    FTCUDA_SIM_ENTER(cuGraphExecEventRecordNodeSetEvent);
    return change_in<RecordOperation>(executable, node,
                                      [=](Operation& operation) { return describe_record(event, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* dependencies,
                                                   std::size_t count, CUevent event) {
    const Inside inside{graph};
    FTCUDA_SIM_ENTER(cuGraphAddEventWaitNode);
    return add(made, graph, dependencies, count, [=](Operation& operation) { return describe_wait(event, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent* event) {
    const Inside inside{handle};
    FTCUDA_SIM_ENTER(cuGraphEventWaitNodeGetEvent);
    return ask<WaitOperation>(handle, [=](Node&, WaitOperation& wait) { *event = wait.handle; });
}

FTCUDA_SIM_EXPORT CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
    const Inside inside{node};
    FTCUDA_SIM_ENTER(cuGraphEventWaitNodeSetEvent);
    return change<WaitOperation>(node, [=](Operation& operation) { return describe_wait(event, operation); });
}

FTCUDA_SIM_EXPORT CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
    const Inside inside{executable, node};
    FTCUDA_SIM_ENTER(cuGraphExecEventWaitNodeSetEvent);
    return change_in<WaitOperation>(executable, node,
                                    [=](Operation& operation) { return describe_wait(event, operation); });
}

}  // namespace ftcuda::sim
