// The capture of one graph by us: the streams that are part of it, and whose turn it is. To the driver, all calls that
// add to one graph, or to graphs that are part of one another, come one at a time.
//
// A stream of a session takes submissions only while the session captures. Its word has the exclusive bit for ever, so
// that other streams pay nothing for that question (Stream::begin_submission).
#pragma once

#include "../completion/deferred_release.hpp"
#include "../sync/mutex.hpp"
#include "../sync/reason.hpp"
#include "../sync/ref.hpp"
#include "captured_memory.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <vector>

namespace ftcuda::core {

class CaptureSession;
class Context;
class Stream;

// What was captured, for as long as it may be launched. A list that only sessions add to, under their lock.
class CapturedOperands final : public Shared {
    friend class CaptureSession;

public:
    CapturedOperands() = default;
    // What was captured, and more.
    CapturedOperands(Ref<CapturedOperands> captured, std::vector<Ref<Shared>> further) noexcept
        : captured_(std::move(captured)), further_(std::move(further)) {}

    // Conditions without a node, with which the driver makes nothing to launch. Once the capture is over.
    std::size_t unused_conditions() const noexcept { return unused_conditions_; }
    // What note() was given.
    const std::vector<Ref<Shared>>& notes() const noexcept { return notes_; }
    // Null unless it allocates memory.
    CapturedMemory* memory() const noexcept { return memory_.get(); }

private:
    ~CapturedOperands() override = default;
    const Ref<CapturedOperands> captured_{};    // null: it is this
    const std::vector<Ref<Shared>> further_{};  // what others added
    std::vector<deferred_release::Retention> all_;
    std::vector<Ref<Shared>> notes_;
    Ref<CapturedMemory> memory_;
    std::size_t unused_conditions_ = 0;
};

// What the sessions of one graph and of the graphs within it share.
class CaptureHierarchy final : public Shared {
    friend class CaptureSession;

    CaptureHierarchy() : operands_(Ref<CapturedOperands>::adopt(new CapturedOperands)) {}
    ~CaptureHierarchy() override = default;

    Mutex mutex_{Rank::capture};
    // The outermost session's too, until it ends.
    Ref<CapturedOperands> operands_ GUARDED_BY(mutex_);
    // Those that capture, in the order in which they began. Each has an owner that closes it before it ends.
    std::vector<CaptureSession*> capturing_ GUARDED_BY(mutex_);
    // Something was lost: a part, a graph within another one half captured, or the order of a node. Nothing is added.
    bool is_spoilt_ GUARDED_BY(mutex_) = false;
    // The driver failed in a graph within another one, and may have destroyed it: nobody touches what is around it.
    bool is_broken_ GUARDED_BY(mutex_) = false;
};

class CaptureSession final : public Shared {
public:
    // `origin`: the stream that captures, which the session closes. `outer`: the session whose graph the captured one
    // is part of, by what embody() says; null for a graph of its own.
    static Status create(Context& context, unsigned flags, int priority, CaptureSession* outer,
                         Ref<CaptureSession>& session, Ref<Stream>& origin);
    // The graph, of the outer session's, that is captured to. Before begin().
    void embody(abi::CUgraph body) EXCLUDES(hierarchy_->mutex_);

    // Once, and within another session only while that one captures. Relaxed: nothing that another thread does ends it.
    Status begin() EXCLUDES(hierarchy_->mutex_);
    // The graph and what it uses, the caller's from now on; null for one that is part of the outer session's.
    Status end(abi::CUgraph& graph, Ref<CapturedOperands>& operands) EXCLUDES(hierarchy_->mutex_);
    // Ends the capture, if one is under way, and those within it, and closes its streams. True if something was lost by
    // that. Idempotent.
    bool close() noexcept EXCLUDES(hierarchy_->mutex_);
    // Takes no lock: for who may have another session's.
    bool is_capturing() const noexcept;

    // A stream of its own that goes on from where `stream` is.
    Status fork(Stream& stream, Ref<Stream>& forked) EXCLUDES(hierarchy_->mutex_);
    // What `stream` is given from now on comes after what `other`, of the same session, was given, which takes no more.
    Status join(Stream& stream, Stream& other) EXCLUDES(hierarchy_->mutex_);
    // Where the work of `stream` goes on: in the stream that it was joined to, and so on; or in itself.
    Ref<Stream> heir(Stream& stream) EXCLUDES(hierarchy_->mutex_);
    // A stream that fork() made, and that was not joined, takes no more: there is no graph without it.
    void leave(Stream& part) noexcept EXCLUDES(hierarchy_->mutex_);
    // Whether what it captures to is part of another session's graph.
    bool is_within_another() const noexcept { return static_cast<bool>(outer_); }
    // Whether both capture to one graph, or to graphs within it.
    bool shares_graph_with(const CaptureSession& other) const noexcept {
        return hierarchy_.get() == other.hierarchy_.get();
    }
    // Where a stream is in its capture: in that graph, behind those nodes.
    struct Place {
        abi::CUgraph graph = nullptr;
        const abi::CUgraphNode* before = nullptr;
        std::size_t count = 0;
    };
    // A node as the next thing in `stream`, which `add` makes.
    using Add = std::function<Status(const Place& place, abi::CUgraphNode& node)>;
    Status add(Stream& stream, const Add& add) EXCLUDES(hierarchy_->mutex_);
    // Calls `use` with the graph under capture.
    using Use = std::function<Status(abi::CUgraph graph)>;
    Status use(Stream& stream, const Use& use) EXCLUDES(hierarchy_->mutex_);

    // For a submission: waits for its turn, if the session captures.
    Status begin_call() noexcept NOT_ANALYSED;
    void end_call() noexcept NOT_ANALYSED;
    // Until the graph and its launches are gone. For a submission, or what add() calls.
    void keep(deferred_release::Retention retention) NOT_ANALYSED;
    // What was kept last: the call failed, in the same submission or call of add().
    void keep_no_more() noexcept NOT_ANALYSED;
    // For a submission: the node that it has become, and what others are to know of that. If the driver does not say
    // it, nothing is added any more.
    Status find_node(Stream& stream, abi::CUgraphNode& node) noexcept NOT_ANALYSED;
    void note(Ref<Shared> note) NOT_ANALYSED;
    // For a submission: what the graph allocates.
    CapturedMemory& memory() NOT_ANALYSED;
    // For what use() and add() call: a condition was made, or has its node.
    void note_condition() noexcept NOT_ANALYSED;
    void note_conditional_node() noexcept NOT_ANALYSED;

private:
    CaptureSession(Context& context, Ref<CaptureHierarchy> hierarchy, Ref<CaptureSession> outer) noexcept
        : context_(context), hierarchy_(std::move(hierarchy)), outer_(std::move(outer)) {}
    ~CaptureSession() override = default;

    Status capturing() const noexcept REQUIRES(hierarchy_->mutex_);
    bool is_within(const CaptureSession& other) const noexcept;
    // Takes the session out of those that capture, unless the driver fails and goes on capturing. The graph is null for
    // one within another one.
    Status end_capture(abi::CUgraph& graph) noexcept REQUIRES(hierarchy_->mutex_);
    bool still_captures() const noexcept;
    void join_parts() noexcept REQUIRES(hierarchy_->mutex_);
    // This one, which captures, and all within it. Their lock is one.
    void lose(bool may_call) noexcept NOT_ANALYSED;
    void unlist() noexcept REQUIRES(hierarchy_->mutex_);
    Status find_place(Stream& stream, Place& place) noexcept REQUIRES(hierarchy_->mutex_);
    Status order(Stream& first, Stream& then) REQUIRES(hierarchy_->mutex_);
    Stream* pop_stream() noexcept EXCLUDES(hierarchy_->mutex_);

    // Constant after construction.
    Context& context_;
    const Ref<CaptureHierarchy> hierarchy_;
    const Ref<CaptureSession> outer_;  // null for a graph of its own
    abi::CUstream origin_ = nullptr;

    // Whether it is among those that capture: written under the lock. Acquire and release: who finds that it does not
    // any more comes after its end.
    std::atomic<bool> capturing_{false};

    abi::CUgraph body_ GUARDED_BY(hierarchy_->mutex_) = nullptr;
    bool begun_ GUARDED_BY(hierarchy_->mutex_) = false;
    bool closed_ GUARDED_BY(hierarchy_->mutex_) = false;
    // The origin first. They close with the session: one that ends before would take the capture with it. The session
    // has their handles, and so needs no references, which would be a cycle.
    std::vector<Stream*> streams_ GUARDED_BY(hierarchy_->mutex_);
    // Those among them that fork() made and nobody has joined.
    std::vector<Stream*> parts_ GUARDED_BY(hierarchy_->mutex_);
    // Those that join() ended, and what each was joined to; until the session is closed.
    std::map<const Stream*, Stream*> heirs_ GUARDED_BY(hierarchy_->mutex_);
};

}  // namespace ftcuda::core
