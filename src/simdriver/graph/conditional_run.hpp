// A conditional node in a launch: when its turn comes it looks at the condition, and gives the body that is chosen to
// queues of the executable's own, so that branches of a body run beside each other as those of the graph do.
#pragma once

#include "launching.hpp"

#include <memory>
#include <vector>

namespace ftcuda::sim {

// Under the lock but for what says otherwise. The bodies do what they did when the graph was launched, whatever the
// executable is changed to since.
class ConditionalRun : public std::enable_shared_from_this<ConditionalRun> {
public:
    ConditionalRun(const ConditionalOperation& operation, Launching& launching);

    // Once: what the bodies touch is the work's to touch.
    Work as_work();
    // The work is in a queue, with this clock.
    void submitted(std::shared_ptr<const Clock> clock) { clock_ = std::move(clock); }

private:
    // A queue, and the name that it has in clocks while this launch uses it.
    struct Lane {
        std::shared_ptr<Queue> queue;
        std::uint64_t id = 0;
    };
    struct BodyStep {
        Prepared prepared;
        std::vector<std::size_t> after;
        std::size_t lane = 0;
    };
    struct Body {
        std::vector<BodyStep> steps;
        std::vector<std::size_t> last;
        std::vector<Lane> lanes;
    };

    Body prepare_body(const Graph& graph, Launching& launching);
    CUresult run();  // by a worker, without the lock
    const Body* chosen() const;
    void play(Guard& lock, const Body& body);
    void end_long_loop(Guard& lock);
    // What comes after `before` and after all that its lanes did so far, but before all that they are going to do.
    std::shared_ptr<const Clock> clock_of_round(const Clock& before) const;

    Context* const context_;
    const std::shared_ptr<Conditions> conditions_;
    const CUgraphConditionalHandle handle_;
    const int type_;
    std::vector<Body> bodies_;
    std::vector<Lane> all_lanes_;         // of the bodies, and of conditional nodes in them
    std::vector<std::uint64_t> touches_;  // until as_work()
    std::shared_ptr<const Clock> clock_;  // of the work, then of the latest round; null unless races are watched
    bool runs_long_ = false;
};

}  // namespace ftcuda::sim
