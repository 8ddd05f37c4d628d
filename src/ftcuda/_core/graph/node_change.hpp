// What a node is to do: all of it, for a new node or for one of an executable, or what is to be another than before.
#pragma once

#include "../completion/host_call.hpp"
#include "../launch/bound_launch.hpp"
#include "../memory/copy.hpp"
#include "../stream/event.hpp"
#include "graph_node.hpp"

#include <optional>

namespace ftcuda::core {

class NodeChange {
public:
    virtual ~NodeChange() = default;

    int type() const noexcept { return type_; }
    // What may fail or take time, before others have to wait. With the context current.
    virtual Status prepare(Context&) { return {}; }
    // Sets what it says in `parameters`, and in what the node keeps. In the turn of graphs, the context current.
    virtual Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) = 0;
    // How many graphs such a node has within it.
    virtual std::size_t within() const noexcept { return 0; }
    // The definition that a node of this is a copy of, or null.
    virtual GraphDefinition* source() const noexcept { return nullptr; }

protected:
    explicit NodeChange(int type) noexcept : type_(type) {}
    NodeChange(const NodeChange&) = delete;
    NodeChange& operator=(const NodeChange&) = delete;

private:
    const int type_;
};

// Memory that a node uses. `owner`: what else keeps it, or null.
struct NodeMemory {
    abi::CUdeviceptr pointer = 0;
    Buffer* buffer = nullptr;  // null: memory that is not ours
    Ref<deferred_release::ForeignReference> owner;
};

struct EmptyChange final : NodeChange {
    EmptyChange() noexcept : NodeChange(abi::CU_GRAPH_NODE_TYPE_EMPTY) {}
    Status apply(Context&, abi::CUgraphNodeParams&, GraphNode::Kept&) override { return {}; }
};

// Keeps the arguments with leases on their memory, the kernel, and the caller's configuration. What is null stays as it
// is. `shape` is the configuration's.
class KernelChange final : public NodeChange {
public:
    KernelChange(const LaunchShape* shape, Ref<deferred_release::ForeignReference> configuration, Kernel* kernel,
                 Ref<BoundArguments> arguments)
        : NodeChange(abi::CU_GRAPH_NODE_TYPE_KERNEL), shape_(shape), configuration_(std::move(configuration)),
          arguments_(std::move(arguments)) {
        if (kernel != nullptr) kernel_ = Ref<Kernel>(*kernel);
    }
    // Nothing changes, with a reason, if the node does not keep this any more in place of its kernel.
    void expect(const GraphNode::Kept& kept) noexcept {
        expected_ = kept[1];
        expects_ = true;
    }
    Status prepare(Context& context) override;
    Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) override;

private:
    const LaunchShape* const shape_;
    const Ref<deferred_release::ForeignReference> configuration_;
    Ref<Kernel> kernel_;
    const Ref<BoundArguments> arguments_;
    Ref<Shared> expected_;
    bool expects_ = false;
    Ref<Shared> held_;             // the arguments, as they are now
    void** parameters_ = nullptr;  // of these
    abi::CUfunction function_ = nullptr;
};

// Keeps the destination.
struct FillChange final : NodeChange {
    FillChange() noexcept : NodeChange(abi::CU_GRAPH_NODE_TYPE_MEMSET) {}
    Status prepare(Context& context) override;
    Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) override;

    bool has_destination = false, has_value = false, has_width = false, has_height = false, has_pitch = false;
    NodeMemory destination;
    unsigned value = 0, element_size = 0;
    std::size_t width = 0, height = 0, pitch = 0;

private:
    Ref<Shared> held_;
};

// Keeps the destination, and the source.
struct CopyChange final : NodeChange {
    CopyChange() noexcept : NodeChange(abi::CU_GRAPH_NODE_TYPE_MEMCPY) {}
    Status prepare(Context& context) override;
    Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) override;

    bool has_destination = false, has_source = false, has_size = false;
    NodeMemory destination, source;
    std::size_t size = 0;

private:
    Ref<Shared> held_destination_, held_source_;
};

// Records an event, or waits for it. Keeps the event, and the caller's object.
class EventChange final : public NodeChange {
public:
    EventChange(int type, Event& event, Ref<deferred_release::ForeignReference> of_caller)
        : NodeChange(type), event_(event), of_caller_(std::move(of_caller)) {}
    Status prepare(Context& context) override;
    Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) override;

private:
    const Ref<Event> event_;
    const Ref<deferred_release::ForeignReference> of_caller_;
    Ref<Shared> held_;
};

// Calls a function of the host's. Keeps what it needs, and the caller's function; null for a function pointer.
class HostChange final : public NodeChange {
public:
    HostChange(abi::CUhostFn function, void* user_data, deferred_release::Retention retention,
               Ref<deferred_release::ForeignReference> of_caller);
    Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) override;

private:
    const abi::CUhostFn function_;
    void* const user_data_;
    Ref<Shared> held_;
    const Ref<deferred_release::ForeignReference> of_caller_;
};

// A copy of another graph. Keeps what that keeps.
class ChildChange final : public NodeChange {
public:
    // `lasts`: it will be told again, of executables that are made later, whatever the graph is by then. So a copy is
    // made at once, and kept too.
    explicit ChildChange(GraphDefinition& child, bool lasts = false);
    ~ChildChange() override;
    Status prepare(Context& context) override;
    Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) override;
    std::size_t within() const noexcept override { return 1; }
    GraphDefinition* source() const noexcept override { return child_.get(); }

private:
    Ref<GraphDefinition> child_;
    const bool lasts_;
    Ref<GraphDefinition> copy_;  // what has the child then
};

// Memory that each launch allocates, at an address that the driver says when the node is there. Keeps who reaches it.
class AllocationChange final : public NodeChange {
public:
    enum class Kind : int { device, host, managed };

    // `reached_by`: ordinals of further devices.
    AllocationChange(std::size_t size, Kind kind, std::vector<int> reached_by)
        : NodeChange(abi::CU_GRAPH_NODE_TYPE_MEM_ALLOC), size_(size), kind_(kind), reached_by_(std::move(reached_by)) {}
    Status prepare(Context& context) override;
    Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) override;

private:
    const std::size_t size_;
    const Kind kind_;
    const std::vector<int> reached_by_;
};

// The end of such memory.
class FreeChange final : public NodeChange {
public:
    explicit FreeChange(abi::CUdeviceptr pointer) noexcept
        : NodeChange(abi::CU_GRAPH_NODE_TYPE_MEM_FREE), pointer_(pointer) {}
    Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) override;

private:
    const abi::CUdeviceptr pointer_;
};

class ConditionalChange final : public NodeChange {
public:
    // `kind`: a CUgraphConditionalNodeType.
    ConditionalChange(std::uint64_t condition, int kind, std::size_t bodies) noexcept
        : NodeChange(abi::CU_GRAPH_NODE_TYPE_CONDITIONAL), condition_(condition), kind_(kind), bodies_(bodies) {}
    Status apply(Context& context, abi::CUgraphNodeParams& parameters, GraphNode::Kept& kept) override;
    std::size_t within() const noexcept override { return bodies_; }

private:
    const std::uint64_t condition_;
    const int kind_;
    const std::size_t bodies_;
};

}  // namespace ftcuda::core
