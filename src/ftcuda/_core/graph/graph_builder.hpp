// A graph under construction: a stream that is captured, alone or as part of another builder's capture.
#pragma once

#include "../stream/stream.hpp"
#include "graph.hpp"

namespace ftcuda::core {

class GraphBuilder final : public Shared {
public:
    static Status create(Context& context, unsigned flags, int priority, Ref<GraphBuilder>& builder);

    Stream& stream() const noexcept { return *stream_; }
    bool is_primary() const noexcept { return primary_; }
    bool is_of_capture(const GraphBuilder& other) const noexcept { return session_.get() == other.session_.get(); }
    bool is_building() const noexcept { return !is_closed() && session_->is_capturing(); }
    bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    Status begin() { return session_->begin(); }
    Status end() EXCLUDES(mutex_);
    // What end() made; a reason, if it did not yet.
    Status definition(Ref<GraphDefinition>& definition) EXCLUDES(mutex_);

    // A builder of the same capture, which goes on from where this one is.
    Status split(Ref<GraphBuilder>& part);
    // This one goes on after `part`, of the same capture, which is closed by that.
    Status join(GraphBuilder& part);
    Status embed(GraphBuilder& child);

    // Idempotent. True if a capture was lost by it. A part that was not joined stays in the capture, which cannot end
    // well then.
    bool close() noexcept EXCLUDES(mutex_);

private:
    GraphBuilder(Ref<CaptureSession> session, Ref<Stream> stream, bool primary) noexcept
        : session_(std::move(session)), stream_(std::move(stream)), primary_(primary) {}
    ~GraphBuilder() override = default;

    // Constant after construction.
    const Ref<CaptureSession> session_;
    const Ref<Stream> stream_;
    const bool primary_;

    // Acquire and release: it guards no data.
    std::atomic<bool> closed_{false};

    Mutex mutex_{Rank::graph_builder};
    Ref<GraphDefinition> definition_ GUARDED_BY(mutex_);
};

}  // namespace ftcuda::core
