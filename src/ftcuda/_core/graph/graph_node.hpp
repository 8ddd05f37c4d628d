// A node of a graph definition: what the driver was told of it, and what it keeps.
#pragma once

#include "../../_driver/abi.hpp"
#include "../stream/graph_turn.hpp"
#include "../sync/ref.hpp"
#include "shared_graphs.hpp"

#include <array>
#include <vector>

namespace ftcuda::core {

class GraphDefinition;

class GraphNode final : public Shared {
    friend class GraphDefinition;

public:
    // By what node_change.hpp says of each kind of node; null for nothing.
    using Kept = std::array<Ref<Shared>, 3>;

    int type() const noexcept { return type_; }
    // Of a node that is gone it may be another one's.
    abi::CUgraphNode cu_node() const noexcept { return node_; }
    // In the turn of graphs: whether nobody has destroyed it.
    bool is_there() const noexcept { return is_there_; }

private:
    static SharedGraphs::Kept list(const Kept& kept);

    explicit GraphNode(int type);
    ~GraphNode() override;

    // Constant once the definition has it.
    const int type_;
    abi::CUgraphNode node_ = nullptr;

    // In the turn of graphs.
    abi::CUgraphNodeParams parameters_{};
    Kept kept_;
    SharedGraphs::Objects given_;               // of what it keeps
    std::vector<Ref<GraphDefinition>> within_;  // of a child graph, or of the bodies of a conditional node
    bool is_there_ = false;
};

}  // namespace ftcuda::core
