// A graph under construction: a stream that is captured, alone or as part of another builder's capture, or to a graph
// within another builder's.
#pragma once

#include "../stream/stream.hpp"
#include "graph.hpp"

namespace ftcuda::core {

class GraphBuilder final : public Shared {
public:
    static Status create(Context& context, unsigned flags, int priority, Ref<GraphBuilder>& builder);

    Stream& stream() const noexcept { return *stream_; }
    enum class Kind : unsigned char {
        primary,  // it has a capture
        part,     // of another one's
        body,     // its capture is of the body of a conditional node of another one's
    };
    Kind kind() const noexcept { return kind_; }
    bool is_of_capture(const GraphBuilder& other) const noexcept { return session_.get() == other.session_.get(); }
    bool is_in_body() const noexcept { return session_->is_within_another(); }
    bool is_building() const noexcept { return !is_closed() && session_->is_capturing(); }
    // Known to who has the session's lock before anybody else.
    bool is_closed() const noexcept { return stream_->is_over(); }

    Status begin() { return session_->begin(); }
    Status end() EXCLUDES(mutex_);
    // What end() made; a reason, if it did not yet.
    Status definition(Ref<GraphDefinition>& definition) EXCLUDES(mutex_);

    // A builder of the same capture, which goes on from where this one is.
    Status split(Ref<GraphBuilder>& part);
    // This one goes on after `part`, of the same capture, which is closed by that.
    Status join(GraphBuilder& part);
    Status embed(GraphBuilder& child);
    // A launch whose `parameters` may be others in each launch of the graph. `scratch`: arguments, buffers, of which
    // each executable has others. Not in a body. `caller` keeps the shape.
    Status launch(const LaunchShape& shape, Ref<deferred_release::ForeignReference> caller, Kernel& kernel,
                  Ref<BoundArguments> arguments, std::vector<CapturedLaunch::Parameter> parameters,
                  std::vector<std::size_t> scratch);
    // A function of the host's, which the graph retains with what is retained.
    Status call(abi::CUhostFn function, void* user_data, deferred_release::Retention retention);
    // `value`: at the begin of each launch, where `has_default`; else anything.
    Status create_condition(bool has_default, unsigned value, std::uint64_t& condition);
    // A node that runs graphs of its own as the condition says, a CUgraphConditionalNodeType; `bodies` build these.
    Status add_conditional(std::uint64_t condition, int type, std::vector<Ref<GraphBuilder>>& bodies);

    // Idempotent. True if a capture was lost by it. A part that was not joined stays in the capture, which cannot end
    // well then.
    bool close() noexcept EXCLUDES(mutex_);

private:
    GraphBuilder(Ref<CaptureSession> session, Ref<Stream> stream, Kind kind) noexcept
        : session_(std::move(session)), stream_(std::move(stream)), kind_(kind) {}
    ~GraphBuilder() override = default;

    Status create_body(Ref<GraphBuilder>& body);
    Status add_node(std::uint64_t condition, int type, const std::vector<Ref<GraphBuilder>>& bodies);

    // Constant after construction.
    const Ref<CaptureSession> session_;
    const Ref<Stream> stream_;
    const Kind kind_;

    Mutex mutex_{Rank::graph_builder};
    Ref<GraphDefinition> definition_ GUARDED_BY(mutex_);
};

}  // namespace ftcuda::core
