#include "node_change.hpp"

#include "../sync/kept_lease.hpp"
#include "graph_definition.hpp"

namespace ftcuda::core {

using namespace abi;

namespace {

// Memory that a node uses, and who else keeps it.
class HeldMemory final : public KeptLease<Buffer> {
public:
    HeldMemory(Buffer& buffer, Ref<deferred_release::ForeignReference> owner) noexcept
        : KeptLease<Buffer>(buffer), owner_(std::move(owner)) {}

    bool has(CUdeviceptr begin, std::size_t bytes) const noexcept {
        const CUdeviceptr first = object().pointer();
        return begin >= first && begin - first <= object().size() && bytes <= object().size() - (begin - first);
    }

private:
    const Ref<deferred_release::ForeignReference> owner_;  // null: nobody
};

Status hold(Context& context, const NodeMemory& memory, Ref<Shared>& held) {
    if (memory.buffer == nullptr) {
        if (memory.owner) held = Ref<Shared>(*memory.owner);
        return {};
    }
    if (!memory.buffer->is_reachable_from(context)) return Reason::wrong_device;
    Ref<HeldMemory> lease = Ref<HeldMemory>::adopt(new HeldMemory(*memory.buffer, memory.owner));
    if (!lease->enter()) return Reason::closed;
    held = Ref<Shared>::adopt(lease.detach());
    return {};
}

// Of memory of ours it is known how much there is.
bool may_touch(const Ref<Shared>& held, CUdeviceptr begin, std::size_t bytes) noexcept {
    const auto* const memory = dynamic_cast<const HeldMemory*>(held.get());
    return memory == nullptr || memory->has(begin, bytes);
}

// The arguments of a kernel as they are now: tensor maps are read once.
class HeldArguments final : public Shared {
public:
    HeldArguments(Ref<BoundArguments> bound, const Arguments& arguments)
        : bound_(std::move(bound)), read_(arguments, bound_->count()) {}

    Status lease(const Context& context) {
        const Operands& operands = read_.arguments().operands;
        for (std::size_t index = 0; index < operands.count; ++index) {
            if (!operands.buffers[index]->is_reachable_from(context)) return Reason::wrong_device;
            auto* const lease = new KeptLease<Buffer>(*operands.buffers[index]);
            leases_.push_back(Ref<Shared>::adopt(lease));
            if (!lease->enter()) return Reason::closed;
        }
        return {};
    }
    void** parameters() const noexcept { return read_.arguments().parameters; }

private:
    ~HeldArguments() override = default;

    const Ref<BoundArguments> bound_;
    const ReadMaps read_;
    std::vector<Ref<Shared>> leases_;
};

// What the driver is told of who reaches memory.
class HeldAccesses final : public Shared {
public:
    explicit HeldAccesses(const std::vector<int>& devices) {
        for (const int device : devices)
            all_.push_back({{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    }
    const std::vector<CUmemAccessDesc>& all() const noexcept { return all_; }

private:
    ~HeldAccesses() override = default;

    std::vector<CUmemAccessDesc> all_;
};

// What was submitted with a retention, kept as objects are.
class Held final : public Shared {
public:
    explicit Held(deferred_release::Retention retention) noexcept : retention_(std::move(retention)) {}

private:
    ~Held() override = default;

    const deferred_release::Retention retention_;
};

}  // namespace

Status KernelChange::prepare(Context& context) {
    if (kernel_) {
        if (const Status status = kernel_->function(context, function_); !status.ok()) return status;
    }
    if (!arguments_) return {};
    Arguments arguments;
    if (const Status status = arguments_->get(context, arguments); !status.ok()) return status;
    const Ref<HeldArguments> held = Ref<HeldArguments>::adopt(new HeldArguments(arguments_, arguments));
    if (const Status status = held->lease(context); !status.ok()) return status;
    parameters_ = held->parameters();
    held_ = Ref<Shared>(*held);
    return {};
}

Status KernelChange::apply(Context& context, CUgraphNodeParams& parameters, GraphNode::Kept& kept) {
    CUDA_KERNEL_NODE_PARAMS_v2& node = parameters.kernel;
    if (expects_ && kept[1].get() != expected_.get()) return Reason::other_kernel;
    if (shape_ != nullptr) {
        const CUlaunchConfig& config = shape_->config();
        node.gridDimX = config.gridDimX;
        node.gridDimY = config.gridDimY;
        node.gridDimZ = config.gridDimZ;
        node.blockDimX = config.blockDimX;
        node.blockDimY = config.blockDimY;
        node.blockDimZ = config.blockDimZ;
        node.sharedMemBytes = config.sharedMemBytes;
        kept[2] = Ref<Shared>(*configuration_);
    }
    if (kernel_) {
        node.func = function_;
        node.kern = nullptr;
        kept[1] = Ref<Shared>(*kernel_);
    }
    if (held_) {
        node.kernelParams = parameters_;
        node.extra = nullptr;
        kept[0] = held_;
    }
    node.ctx = context.cu_context();
    auto* const kernel = static_cast<Kernel*>(kept[1].get());
    return kernel == nullptr ? Status() : kernel->allow_dynamic_shared(context, node.func, node.sharedMemBytes);
}

Status FillChange::prepare(Context& context) { return has_destination ? hold(context, destination, held_) : Status(); }

Status FillChange::apply(Context& context, CUgraphNodeParams& parameters, GraphNode::Kept& kept) {
    CUDA_MEMSET_NODE_PARAMS_v2& node = parameters.memset;
    if (has_destination) {
        node.dst = destination.pointer;
        kept[0] = held_;
    }
    if (has_value) {
        node.value = value;
        node.elementSize = element_size;
    }
    if (has_width) node.width = width;
    if (has_height) node.height = height;
    if (has_pitch) node.pitch = pitch;
    node.ctx = context.cu_context();
    const std::size_t row = node.width * node.elementSize;
    if (node.width > SIZE_MAX / 4 || (node.height > 1 && node.pitch > (SIZE_MAX - row) / (node.height - 1)))
        return Reason::too_small;
    const std::size_t bytes = node.height > 1 ? node.pitch * (node.height - 1) + row : row;
    return may_touch(kept[0], node.dst, bytes) ? Status() : Reason::too_small;
}

Status CopyChange::prepare(Context& context) {
    if (has_destination) {
        if (const Status status = hold(context, destination, held_destination_); !status.ok()) return status;
    }
    return has_source ? hold(context, source, held_source_) : Status();
}

Status CopyChange::apply(Context& context, CUgraphNodeParams& parameters, GraphNode::Kept& kept) {
    CUDA_MEMCPY3D& node = parameters.memcpy.copyParams;
    if (has_destination) {
        node.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        node.dstDevice = destination.pointer;
        kept[0] = held_destination_;
    }
    if (has_source) {
        node.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
        node.srcDevice = source.pointer;
        kept[1] = held_source_;
    }
    if (has_size) node.WidthInBytes = size;
    node.Height = node.Depth = 1;
    parameters.memcpy.copyCtx = context.cu_context();
    const bool fits =
        may_touch(kept[0], node.dstDevice, node.WidthInBytes) && may_touch(kept[1], node.srcDevice, node.WidthInBytes);
    return fits ? Status() : Reason::too_small;
}

Status EventChange::prepare(Context& context) {
    if (event_->session() != nullptr) return Reason::other_capture;
    if (&event_->context() != &context) return Reason::wrong_device;
    const Ref<KeptLease<Event>> lease = Ref<KeptLease<Event>>::adopt(new KeptLease<Event>(*event_));
    if (!lease->enter()) return Reason::closed;
    event_->share_cu_event();  // launches of the graph record it, and do not say so
    held_ = Ref<Shared>(*lease);
    return {};
}

Status EventChange::apply(Context&, CUgraphNodeParams& parameters, GraphNode::Kept& kept) {
    CUevent& event =
        type() == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? parameters.eventRecord.event : parameters.eventWait.event;
    event = event_->cu_event();
    kept[0] = held_;
    kept[1] = Ref<Shared>(*of_caller_);
    return {};
}

HostChange::HostChange(CUhostFn function, void* user_data, deferred_release::Retention retention,
                       Ref<deferred_release::ForeignReference> of_caller)
    : NodeChange(CU_GRAPH_NODE_TYPE_HOST), function_(function), user_data_(user_data),
      held_(Ref<Shared>::adopt(new Held(std::move(retention)))), of_caller_(std::move(of_caller)) {}

Status HostChange::apply(Context&, CUgraphNodeParams& parameters, GraphNode::Kept& kept) {
    parameters.host = {function_, user_data_};
    kept[0] = held_;
    kept[1] = of_caller_ ? Ref<Shared>(*of_caller_) : Ref<Shared>();
    return {};
}

ChildChange::ChildChange(GraphDefinition& child, bool lasts)
    : NodeChange(CU_GRAPH_NODE_TYPE_GRAPH), child_(child), lasts_(lasts) {}
ChildChange::~ChildChange() = default;

Status ChildChange::prepare(Context& context) {
    if (!lasts_) return {};
    Ref<GraphDefinition> copy;
    if (const Status status = GraphDefinition::create(context, copy); !status.ok()) return status;
    ChildChange once(*child_);
    Ref<GraphNode> node;
    if (const Status status = copy->add({}, once, node); !status.ok()) return status;
    GraphDefinition::NodeState state;
    if (const Status status = copy->state(*node, state); !status.ok()) return status;
    child_ = state.within.front();
    copy_ = std::move(copy);
    return {};
}

Status ChildChange::apply(Context& context, CUgraphNodeParams& parameters, GraphNode::Kept& kept) {
    if (&child_->context() != &context) return Reason::wrong_device;
    if (copy_) kept[1] = Ref<Shared>(*copy_);
    return child_->lend(parameters.graph.graph, kept[0]);
}

Status AllocationChange::prepare(Context& context) {
    return context.device().has_memory_pools() ? Status() : Status(Reason::not_supported);
}

Status AllocationChange::apply(Context& context, CUgraphNodeParams& parameters, GraphNode::Kept& kept) {
    const int device = context.device().ordinal();
    CUDA_MEM_ALLOC_NODE_PARAMS& node = parameters.alloc;
    node.poolProps.allocType = kind_ == Kind::managed ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
    node.poolProps.location = {kind_ == Kind::host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                               kind_ == Kind::host ? 0 : device};
    node.bytesize = size_;
    const Ref<HeldAccesses> accesses = Ref<HeldAccesses>::adopt(new HeldAccesses(reached_by_));
    node.accessDescs = accesses->all().empty() ? nullptr : accesses->all().data();
    node.accessDescCount = accesses->all().size();
    kept[0] = Ref<Shared>(*accesses);
    return {};
}

Status FreeChange::apply(Context&, CUgraphNodeParams& parameters, GraphNode::Kept&) {
    parameters.free.dptr = pointer_;
    return {};
}

Status ConditionalChange::apply(Context& context, CUgraphNodeParams& parameters, GraphNode::Kept&) {
    parameters.conditional.handle = condition_;
    parameters.conditional.type = kind_;
    parameters.conditional.size = static_cast<unsigned>(bodies_);
    parameters.conditional.ctx = context.cu_context();
    return {};
}

}  // namespace ftcuda::core
