// What a piece of work does, as the program described it: a capture records it, and a graph's node is one.
#pragma once

#include "foreign_abi.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace ftcuda::sim {

using namespace abi;

struct Context;
struct Event;
struct Function;
struct Graph;

// The clusters of a launch: blocks that run at once and reach each other's shared memory.
struct ClusterShape {
    std::array<unsigned, 3> blocks{1, 1, 1};
    bool is_explicit = false;  // the launch or the kernel says how large

    unsigned size() const noexcept { return blocks[0] * blocks[1] * blocks[2]; }
};

struct Shape {
    std::array<unsigned, 3> grid;
    std::array<unsigned, 3> block;
    unsigned shared_bytes = 0;
    bool cooperative = false;
    ClusterShape cluster{};

    int threads() const noexcept { return static_cast<int>(block[0] * block[1] * block[2]); }
};

struct KernelOperation {
    CUfunction handle = nullptr;  // as it was given: a function's, or a kernel's
    std::shared_ptr<Function> function;
    Shape shape{};
    std::vector<std::byte> parameters;
};

// Of memory: the kind of an allocation, or plain host memory.
constexpr int pageable = -1;

struct CopyOperation {
    CUDA_MEMCPY3D shape{};
    int source = pageable;
    int destination = pageable;
};

struct FillOperation {
    CUDA_MEMSET_NODE_PARAMS shape{};
};

struct HostOperation {
    CUhostFn function = nullptr;
    void* user_data = nullptr;
};

struct RecordOperation {
    CUevent handle = nullptr;
    std::shared_ptr<Event> event;
};

struct WaitOperation {
    CUevent handle = nullptr;
    std::shared_ptr<Event> event;
};

struct ChildOperation {
    std::shared_ptr<Graph> graph;
};

// One of its bodies runs, or none, again and again where it is a WHILE: by a value that kernels set.
struct ConditionalOperation {
    CUgraphConditionalHandle handle = 0;
    int type = CU_GRAPH_COND_TYPE_IF;
    Context* context = nullptr;
    std::vector<std::shared_ptr<Graph>> bodies;
    std::vector<CUgraph> shown;  // the bodies' handles, as cuGraphAddNode showed them
};

// Memory of a graph's own, at an address that is fixed: see memory/graph_memory.hpp.
struct AllocOperation {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    std::vector<CUmemAccessDesc> accesses;  // what the parameters point to
};
struct NoOperation {};

// An allocation that an operation names, by what no other allocation has.
struct Use {
    std::uint64_t begin = 0;
    std::uint64_t id = 0;
    std::uint64_t address = 0;
    bool is_by_address = false;  // of a node that an executable was told of: whatever is at the address
};

struct FreeOperation {
    Use memory;
};

struct Operation {
    std::variant<NoOperation, KernelOperation, CopyOperation, FillOperation, HostOperation, ChildOperation,
                 RecordOperation, WaitOperation, ConditionalOperation, AllocOperation, FreeOperation>
        what;
    std::vector<Use> uses;  // when it was described

    int type() const noexcept {  // CUgraphNodeType
        constexpr int types[] = {
            CU_GRAPH_NODE_TYPE_EMPTY,        CU_GRAPH_NODE_TYPE_KERNEL,     CU_GRAPH_NODE_TYPE_MEMCPY,
            CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_GRAPH,
            CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_CONDITIONAL,
            CU_GRAPH_NODE_TYPE_MEM_ALLOC,    CU_GRAPH_NODE_TYPE_MEM_FREE};
        return types[what.index()];
    }
};

}  // namespace ftcuda::sim
