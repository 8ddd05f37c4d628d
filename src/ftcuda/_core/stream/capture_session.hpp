// The capture of one graph by us: the streams that are part of it, and whose turn it is. To the driver, all calls that
// add to one graph come one at a time.
//
// A stream of a session takes submissions only while the session captures. Its word has the exclusive bit for ever, so
// that other streams pay nothing for that question (Stream::begin_submission).
#pragma once

#include "../sync/mutex.hpp"
#include "../sync/reason.hpp"
#include "../sync/ref.hpp"

#include <functional>
#include <vector>

namespace ftcuda::core {

class Context;
class Stream;

class CaptureSession final : public Shared {
public:
    // `origin`: the stream that captures, which the session closes.
    static Status create(Context& context, unsigned flags, int priority, Ref<CaptureSession>& session,
                         Ref<Stream>& origin);

    // Once. Relaxed: nothing that another thread does ends it.
    Status begin() EXCLUDES(mutex_);
    // The graph, the caller's from now on.
    Status end(abi::CUgraph& graph) EXCLUDES(mutex_);
    // Ends the capture, if one is under way, and closes its streams. True if something was lost by that. Idempotent.
    bool close() noexcept EXCLUDES(mutex_);
    bool is_capturing() noexcept EXCLUDES(mutex_);

    // A stream of its own that goes on from where `stream` is.
    Status fork(Stream& stream, Ref<Stream>& forked) EXCLUDES(mutex_);
    // What `stream` is given from now on comes after what `other`, of the same session, was given, which takes no more.
    Status join(Stream& stream, Stream& other) EXCLUDES(mutex_);
    // A node as the next thing in `stream`: `add` makes it, in that graph and after those nodes.
    using Add = std::function<Status(abi::CUgraph graph, const abi::CUgraphNode* before, std::size_t count,
                                     abi::CUgraphNode& node)>;
    Status add(Stream& stream, const Add& add) EXCLUDES(mutex_);

    // For a submission: waits for its turn, if the session captures.
    Status begin_call() noexcept NOT_ANALYSED;
    void end_call() noexcept NOT_ANALYSED;

private:
    enum class State : unsigned char { unbegun, capturing, ended };

    explicit CaptureSession(Context& context) noexcept : context_(context) {}
    ~CaptureSession() override = default;
    Status capturing() const noexcept REQUIRES(mutex_);
    Status order(Stream& first, Stream& then) REQUIRES(mutex_);
    Stream* pop_stream() noexcept EXCLUDES(mutex_);

    Context& context_;

    Mutex mutex_{Rank::capture};
    State state_ GUARDED_BY(mutex_) = State::unbegun;
    bool closed_ GUARDED_BY(mutex_) = false;
    // The origin first. They close with the session: one that ends before would take the capture with it. The session
    // has their handles, and so needs no references, which would be a cycle.
    std::vector<Stream*> streams_ GUARDED_BY(mutex_);
};

}  // namespace ftcuda::core
