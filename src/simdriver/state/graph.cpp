#include "graph.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ftcuda::sim {

namespace {

// What a node allocates, or null.
Allocation* allocation_of(const Node& node) {
    const auto* const operation = std::get_if<AllocOperation>(&node.operation.what);
    return operation != nullptr ? &driver_state().allocations.at(operation->parameters.dptr) : nullptr;
}

}  // namespace

std::shared_ptr<Graph> make_graph() {
    auto graph = std::make_shared<Graph>();
    graph->handle = reinterpret_cast<CUgraph>(driver_state().graphs.add(graph));
    return graph;
}

const Graph& root_of(const Graph& graph) noexcept {
    const Graph* root = &graph;
    while (root->parent != nullptr) root = root->parent;
    return *root;
}

std::shared_ptr<Node> add_node(Graph& graph, Operation operation, const Nodes& dependencies, Named named) {
    auto node = std::make_shared<Node>();
    node->id = driver_state().next_node_id++;
    node->graph = &graph;
    node->operation = std::move(operation);
    for_each_graph_in(*node, [&](Graph& inner) { inner.parent = &graph; });
    if (named == Named::yes) node->handle = reinterpret_cast<CUgraphNode>(driver_state().nodes.add(node));
    for (const std::shared_ptr<Node>& each : dependencies) connect(*each, *node);
    graph.nodes.push_back(node);
    if (Allocation* const allocation = allocation_of(*node)) ++allocation->of_graph->nodes;
    return node;
}

void remove_node(Node& node) {
    while (!node.dependencies.empty()) disconnect(*node.dependencies.back(), node);
    while (!node.dependents.empty()) disconnect(node, *node.dependents.back());
    Graph& graph = *node.graph;
    node.graph = nullptr;
    driver_state().nodes.remove(node.handle);
    const auto is_it = [&](const std::shared_ptr<Node>& each) { return each.get() == &node; };
    graph.nodes.erase(std::find_if(graph.nodes.begin(), graph.nodes.end(), is_it));
}

void connect(Node& from, Node& to) {
    from.dependents.push_back(&to);
    to.dependencies.push_back(&from);
}

void disconnect(Node& from, Node& to) {
    from.dependents.erase(std::find(from.dependents.begin(), from.dependents.end(), &to));
    to.dependencies.erase(std::find(to.dependencies.begin(), to.dependencies.end(), &from));
}

bool are_connected(const Node& from, const Node& to) noexcept {
    return std::find(from.dependents.begin(), from.dependents.end(), &to) != from.dependents.end();
}

std::vector<Node*> in_order(const Graph& graph) {
    std::unordered_map<const Node*, std::size_t> missing;
    std::vector<Node*> order;
    for (const std::shared_ptr<Node>& node : graph.nodes) {
        missing[node.get()] = node->dependencies.size();
        if (node->dependencies.empty()) order.push_back(node.get());
    }
    for (std::size_t index = 0; index < order.size(); ++index) {
        for (Node* const next : order[index]->dependents) {
            if (--missing[next] == 0) order.push_back(next);
        }
    }
    return order;
}

bool come_before(const Nodes& nodes, const Nodes& ends) {
    std::vector<const Node*> open;
    for (const std::shared_ptr<Node>& end : ends) open.push_back(end.get());
    std::unordered_set<const Node*> reached(open.begin(), open.end());
    while (!open.empty()) {
        const Node* const node = open.back();
        open.pop_back();
        for (const Node* const before : node->dependencies) {
            if (reached.insert(before).second) open.push_back(before);
        }
    }
    return std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) { return reached.count(node.get()) != 0; });
}

void add_once(Nodes& to, const Nodes& nodes) {
    for (const std::shared_ptr<Node>& node : nodes) {
        if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
    }
}

std::shared_ptr<Graph> copy(const Graph& graph, Named named) {
    auto made = named == Named::yes ? make_graph() : std::make_shared<Graph>();
    made->source = driver_state().graphs.find(root_of(graph).handle);
    made->user_objects = graph.user_objects;
    *made->conditions = *graph.conditions;
    for (const auto& [handle, references] : graph.user_objects)
        driver_state().user_objects.find(handle)->references += references;
    std::unordered_map<const Node*, std::shared_ptr<Node>> copies;
    for (const std::shared_ptr<Node>& node : graph.nodes) {
        Operation operation = node->operation;
        if (auto* const child = std::get_if<ChildOperation>(&operation.what)) child->graph = copy(*child->graph, named);
        if (auto* const conditional = std::get_if<ConditionalOperation>(&operation.what)) {
            for (std::shared_ptr<Graph>& body : conditional->bodies) body = copy(*body, named);
            conditional->shown.clear();
        }
        const std::shared_ptr<Node> twin = add_node(*made, std::move(operation), {}, named);
        twin->origin = node->id;
        twin->is_enabled = node->is_enabled;
        copies[node.get()] = twin;
    }
    for (const std::shared_ptr<Node>& node : graph.nodes) {
        for (const Node* const before : node->dependencies) connect(*copies[before], *copies[node.get()]);
    }
    return made;
}

bool has_memory_nodes(const Graph& graph) noexcept {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const std::shared_ptr<Node>& node) {
        return std::holds_alternative<AllocOperation>(node->operation.what) ||
               std::holds_alternative<FreeOperation>(node->operation.what);
    });
}

Node* find_copy(const Graph& copy, std::uint64_t id) noexcept {
    for (const std::shared_ptr<Node>& node : copy.nodes) {
        if (node->origin == id) return node.get();
        Node* found = nullptr;
        for_each_graph_in(*node, [&](const Graph& inner) { found = found != nullptr ? found : find_copy(inner, id); });
        if (found != nullptr) return found;
    }
    return nullptr;
}

void forget_names(Graph& graph) {
    if (graph.handle != nullptr) driver_state().graphs.remove(graph.handle);
    graph.handle = nullptr;
    for (const std::shared_ptr<Node>& node : graph.nodes) {
        if (node->handle != nullptr) driver_state().nodes.remove(node->handle);
        node->graph = nullptr;
        Allocation* const allocation = allocation_of(*node);
        if (allocation != nullptr && --allocation->of_graph->nodes == 0)
            allocation->of_graph->on_last_node(*allocation);
    }
}

}  // namespace ftcuda::sim
