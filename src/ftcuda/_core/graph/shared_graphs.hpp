// The graphs of one definition whose handles others have. What its nodes use is kept by user objects of the driver's
// too, from then on: these go along with what others make of the graphs, clones and executables.
//
// All of it is called in the turn of graphs, with the context current.
#pragma once

#include "../device/context.hpp"
#include "../sync/ref.hpp"

#include <utility>
#include <vector>

namespace ftcuda::core {

class SharedGraphs {
public:
    // User objects that keep the same, one for each graph, which has it; null where it keeps nothing.
    using Objects = std::vector<abi::CUuserObject>;
    using Kept = std::vector<Ref<Shared>>;
    // What each part of a definition keeps, and the objects for that.
    using All = std::vector<std::pair<Kept, Objects*>>;

    explicit SharedGraphs(Context& context) noexcept : context_(context) {}
    SharedGraphs(const SharedGraphs&) = delete;
    SharedGraphs& operator=(const SharedGraphs&) = delete;

    bool is_empty() const noexcept { return graphs_.empty(); }
    bool has(abi::CUgraph graph) const noexcept;
    // What each of `all` keeps is kept by `graph` too, or, if that fails, nothing of it.
    Status add(abi::CUgraph graph, const All& all);
    // Takes all back. Those that there were, to be added again.
    std::vector<abi::CUgraph> end(const All& all) noexcept;
    // A graph that is gone, with what it had.
    void remove(abi::CUgraph graph) noexcept;

    // In each graph, until that fails: what was given is to be taken back then.
    Status give(const Kept& kept, Objects& objects);
    void take_back(Objects& objects) noexcept;

private:
    Status give(abi::CUgraph graph, const Kept& kept, Objects& objects);
    void take_back(abi::CUgraph graph, abi::CUuserObject object) noexcept;

    Context& context_;
    std::vector<abi::CUgraph> graphs_;  // null: one that is gone
};

// What a node is going to keep, given before that may fail. Taken back at the end of the scope, unless somebody has got
// it in exchange for older ones, which are.
class Gift {
public:
    explicit Gift(SharedGraphs& graphs) noexcept : graphs_(graphs) {}
    ~Gift() { graphs_.take_back(objects_); }
    Gift(const Gift&) = delete;
    Gift& operator=(const Gift&) = delete;

    Status give(const SharedGraphs::Kept& kept) { return graphs_.give(kept, objects_); }
    void exchange(SharedGraphs::Objects& objects) noexcept { objects_.swap(objects); }

private:
    SharedGraphs& graphs_;
    SharedGraphs::Objects objects_;
};

}  // namespace ftcuda::core
