#include "capture_session.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../sync/fork.hpp"
#include "stream.hpp"

namespace ftcuda::core {

using driver::cu;
using namespace abi;

Status CaptureSession::create(Context& context, unsigned flags, int priority, Ref<CaptureSession>& session,
                              Ref<Stream>& origin) {
    session = Ref<CaptureSession>::adopt(new CaptureSession(context));
    const Lock lock(session->mutex_);
    session->streams_.reserve(1);
    if (const Status status = Stream::create_captured(context, flags, priority, *session, origin); !status.ok())
        return status;
    session->streams_.push_back(origin.get());
    return {};
}

Status CaptureSession::capturing() const noexcept {
    if (closed_) return Reason::closed;
    return state_ == State::capturing ? Status() : Reason::not_building;
}

Status CaptureSession::begin() {
    if (is_forked()) return Reason::forked;
    // What is captured is kept by the graph (operands.hpp).
    if (!cu.cuUserObjectCreate) return Status(Reason::absent, Entry::cuUserObjectCreate);
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(mutex_);
    if (closed_) return Reason::closed;
    if (state_ != State::unbegun) return Reason::begun;
    context_.begin_capture();
    const Status status =
        context_.observe(cu.cuStreamBeginCapture_v2(streams_.front()->cu_stream(), CU_STREAM_CAPTURE_MODE_RELAXED));
    if (status.ok()) state_ = State::capturing;
    else context_.end_capture();
    return status;
}

Status CaptureSession::end(CUgraph& graph) {
    if (is_forked()) return Reason::forked;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(mutex_);
    if (const Status status = capturing(); !status.ok()) return status;
    state_ = State::ended;
    const Status status = context_.observe(cu.cuStreamEndCapture(streams_.front()->cu_stream(), &graph));
    context_.end_capture();
    return status;
}

bool CaptureSession::close() noexcept {
    if (is_forked()) return false;
    bool lost = false;
    {
        const Lock lock(mutex_);
        if (closed_) return false;
        closed_ = true;
        lost = state_ == State::capturing;
        state_ = State::ended;
        if (lost && context_.may_destroy()) {
            const ContextScope scope(context_);
            CUgraph graph = nullptr;
            // What fails here failed before: a capture that was spoilt, or parts that were never joined.
            if (scope.status().ok() && cu.cuStreamEndCapture(streams_.front()->cu_stream(), &graph).ok())
                deferred_errors::add(context_.observe(cu.cuGraphDestroy(graph)), "destroy", "graph");
        }
        if (lost) context_.end_capture();
    }
    while (Stream* const stream = pop_stream()) stream->close_captured();
    return lost;
}

Stream* CaptureSession::pop_stream() noexcept {
    const Lock lock(mutex_);
    if (streams_.empty()) return nullptr;
    Stream* const last = streams_.back();
    streams_.pop_back();
    return last;
}

bool CaptureSession::is_capturing() noexcept {
    if (is_forked()) return false;
    const Lock lock(mutex_);
    return capturing().ok();
}

Status CaptureSession::fork(Stream& stream, Ref<Stream>& forked) {
    if (is_forked()) return Reason::forked;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    const Lock lock(mutex_);
    if (const Status status = capturing(); !status.ok()) return status;
    streams_.reserve(streams_.size() + 1);
    Ref<Stream> made;
    if (const Status status = Stream::create_captured(context_, stream.flags(), stream.priority(), *this, made);
        !status.ok())
        return status;
    streams_.push_back(made.get());
    if (const Status status = order(stream, *made); !status.ok()) return status;
    forked = std::move(made);
    return {};
}

Status CaptureSession::join(Stream& stream, Stream& other) {
    if (is_forked()) return Reason::forked;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(mutex_);
    if (const Status status = capturing(); !status.ok()) return status;
    const Status status = order(other, stream);
    if (status.ok()) other.end_captured_work();
    return status;
}

Status CaptureSession::order(Stream& first, Stream& then) {
    CUevent event = nullptr;
    if (const Status status = context_.record(first.cu_stream(), event); !status.ok()) return status;
    const Status status = context_.observe(cu.cuStreamWaitEvent(then.cu_stream(), event, 0));
    context_.release_event(event);
    return status;
}

Status CaptureSession::add(Stream& stream, const Add& add) {
    if (is_forked()) return Reason::forked;
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(mutex_);
    if (const Status status = capturing(); !status.ok()) return status;
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned long long id = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* before = nullptr;
    std::size_t count = 0;
    Status status =
        context_.observe(cu.cuStreamGetCaptureInfo_v2(stream.cu_stream(), &state, &id, &graph, &before, &count));
    if (!status.ok()) return status;
    if (state != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return Status::from_driver(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Entry::cuStreamGetCaptureInfo_v2);
    CUgraphNode node = nullptr;
    status = context_.observe(add(graph, before, count, node));
    if (!status.ok()) return status;
    return context_.observe(
        cu.cuStreamUpdateCaptureDependencies(stream.cu_stream(), &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

Status CaptureSession::begin_call() noexcept {
    if (is_forked()) return Reason::forked;
    mutex_.lock();
    const Status status = capturing();
    if (!status.ok()) mutex_.unlock();
    return status;
}

void CaptureSession::end_call() noexcept { mutex_.unlock(); }

}  // namespace ftcuda::core
