#include "preparation.hpp"

#include "../checkers/late_use.hpp"
#include "../memory/transfer.hpp"
#include "../timeline/event.hpp"
#include "../timeline/host_function.hpp"
#include "conditional_run.hpp"
#include "launched_memory.hpp"

namespace ftcuda::sim {

namespace {

struct Prepare {
    Launching& launching;

    Prepared operator()(const NoOperation&) const { return {}; }
    Prepared operator()(const ChildOperation&) const { return {}; }  // its nodes are steps
    Prepared operator()(const KernelOperation& kernel) const {
        late_use::check_again(*kernel.function->module);
        return {prepare(kernel, launching.set_condition), {}};
    }
    Prepared operator()(const CopyOperation& copy) const { return {prepare(copy, Reads::when_run), {}}; }
    Prepared operator()(const FillOperation& fill) const { return {prepare(fill), {}}; }
    Prepared operator()(const HostOperation& host) const { return {prepare_host(host), {}}; }
    Prepared operator()(const RecordOperation& record) const {
        late_use::check_again(record.handle, *record.event);
        return {prepare_record(*record.event), {}};
    }
    Prepared operator()(const WaitOperation& wait) const {
        late_use::check_again(wait.handle, *wait.event);
        Work work;
        work.after.push_back(wait.event->point);
        return {std::move(work), {}};
    }
    Prepared operator()(const AllocOperation& allocation) const { return {prepare(allocation), {}}; }
    Prepared operator()(const FreeOperation& free) const { return {prepare(free), {}}; }
    Prepared operator()(const ConditionalOperation& conditional) const {
        const auto run = std::make_shared<ConditionalRun>(conditional, launching);
        return {run->as_work(), run};
    }
};

}  // namespace

Prepared prepare(const Node& node, Launching& launching) {
    if (!node.is_enabled) return {};
    late_use::check_again(node.operation.uses);
    return std::visit(Prepare{launching}, node.operation.what);
}

}  // namespace ftcuda::sim
