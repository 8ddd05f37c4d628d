#include "capture_session.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../sync/fork.hpp"
#include "../sync/may_wait.hpp"
#include "graph_turn.hpp"
#include "stream.hpp"

#include <algorithm>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

Status CaptureSession::create(Context& context, unsigned flags, int priority, CaptureSession* outer,
                              Ref<CaptureSession>& session, Ref<Stream>& origin) {
    if (const Status status = may_wait(); !status.ok()) return status;
    Ref<CaptureSession> within;
    if (outer != nullptr) within = Ref<CaptureSession>(*outer);
    Ref<CaptureHierarchy> hierarchy = within ? within->hierarchy_ : Ref<CaptureHierarchy>::adopt(new CaptureHierarchy);
    session = Ref<CaptureSession>::adopt(new CaptureSession(context, std::move(hierarchy), std::move(within)));
    const RelaxedCapture relaxed;
    const Lock lock(session->hierarchy_->mutex_);
    session->streams_.reserve(1);
    if (const Status status = Stream::create_captured(context, flags, priority, *session, origin); !status.ok())
        return status;
    session->streams_.push_back(origin.get());
    session->origin_ = origin->cu_stream();
    return {};
}

void CaptureSession::embody(CUgraph body) {
    const Lock lock(hierarchy_->mutex_);
    body_ = body;
}

bool CaptureSession::is_within(const CaptureSession& other) const noexcept {
    for (const CaptureSession* each = outer_.get(); each != nullptr; each = each->outer_.get()) {
        if (each == &other) return true;
    }
    return false;
}

Status CaptureSession::capturing() const noexcept {
    if (closed_) return Reason::closed;
    if (!capturing_.load(std::memory_order_relaxed)) return Reason::not_building;
    return hierarchy_->is_spoilt_ ? Reason::spoilt : Status();
}

Status CaptureSession::begin() {
    // See Device::has_graphs(): what we capture needs none itself, what others capture does (operands.hpp).
    if (!cu.cuUserObjectCreate) return Status(Reason::absent, Entry::cuUserObjectCreate);
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(hierarchy_->mutex_);
    if (closed_) return Reason::closed;
    if (begun_) return Reason::begun;
    if (hierarchy_->is_spoilt_) return Reason::spoilt;
    if (outer_ && !outer_->is_capturing()) return Reason::not_building;
    std::vector<CaptureSession*>& all = hierarchy_->capturing_;
    all.reserve(all.size() + 1);
    context_.begin_capture();
    const Status status = context_.observe(
        outer_ ? cu.cuStreamBeginCaptureToGraph(origin_, body_, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED)
               : cu.cuStreamBeginCapture_v2(origin_, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (!status.ok()) {
        context_.end_capture();
        return status;
    }
    begun_ = true;
    all.push_back(this);
    capturing_.store(true, std::memory_order_release);
    return {};
}

void CaptureSession::unlist() noexcept {
    std::vector<CaptureSession*>& all = hierarchy_->capturing_;
    all.erase(std::remove(all.begin(), all.end(), this), all.end());
    capturing_.store(false, std::memory_order_release);
    context_.end_capture();
}

Status CaptureSession::end_capture(CUgraph& graph) noexcept {
    Status status;
    {
        const Lock lock(graph_turn);  // if it fails it destroys the graph
        status = context_.observe(cu.cuStreamEndCapture(origin_, &graph));
    }
    if (!status.ok() && still_captures()) return status;
    unlist();
    if (outer_) {
        graph = nullptr;  // it is in the outer session's
        if (!status.ok()) hierarchy_->is_spoilt_ = hierarchy_->is_broken_ = true;
    }
    return status;
}

bool CaptureSession::still_captures() const noexcept {
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    return cu.cuStreamIsCapturing(origin_, &state).ok() && state != CU_STREAM_CAPTURE_STATUS_NONE;
}

void CaptureSession::join_parts() noexcept {
    for (Stream* const part : parts_) order(*part, *streams_.front()).ignore();
    parts_.clear();
}

void CaptureSession::lose(bool may_call) noexcept {
    const std::vector<CaptureSession*>& all = hierarchy_->capturing_;
    for (std::size_t index = all.size(); index != 0; --index) {
        CaptureSession& each = *all[index - 1];
        if (&each != this && !each.is_within(*this)) continue;
        CUgraph graph = nullptr;
        if (may_call) each.join_parts();  // or the driver would fail
        // What fails here failed before: a capture that others spoilt.
        if (may_call && each.end_capture(graph).ok() && graph != nullptr && !hierarchy_->is_broken_) {
            const Lock lock(graph_turn);
            deferred_errors::add(context_.observe(cu.cuGraphDestroy(graph)), "destroy", "graph");
        }
        if (each.is_capturing()) each.unlist();
    }
    if (outer_) hierarchy_->is_spoilt_ = true;
}

Status CaptureSession::end(CUgraph& graph, Ref<CapturedOperands>& operands) {
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(hierarchy_->mutex_);
    if (const Status status = capturing(); !status.ok()) return status;
    if (!parts_.empty()) return Reason::unjoined;
    for (const CaptureSession* const each : hierarchy_->capturing_) {
        if (each->is_within(*this)) return Reason::body_unended;
    }
    const Status status = end_capture(graph);
    if (status.ok() && !outer_) operands = std::move(hierarchy_->operands_);
    return status;
}

bool CaptureSession::close() noexcept {
    if (is_forked()) return false;
    bool lost = false;
    Ref<CapturedOperands> operands;  // of a graph that there will not be; they may end others
    {
        const ContextScope scope(context_);
        const bool may_call = context_.may_destroy() && scope.status().ok();
        const Lock lock(hierarchy_->mutex_);
        if (closed_) return false;
        closed_ = true;
        heirs_.clear();
        for (Stream* const stream : streams_) stream->end_captured_work();
        lost = is_capturing();
        if (lost) lose(may_call);
        if (!outer_) operands = std::move(hierarchy_->operands_);
    }
    while (Stream* const stream = pop_stream()) stream->close_captured();
    return lost;
}

Stream* CaptureSession::pop_stream() noexcept {
    const Lock lock(hierarchy_->mutex_);
    if (streams_.empty()) return nullptr;
    Stream* const last = streams_.back();
    streams_.pop_back();
    return last;
}

bool CaptureSession::is_capturing() const noexcept {
    return !is_forked() && capturing_.load(std::memory_order_acquire);
}

Status CaptureSession::fork(Stream& stream, Ref<Stream>& forked) {
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    const Lock lock(hierarchy_->mutex_);
    if (const Status status = capturing(); !status.ok()) return status;
    if (stream.is_over()) return Reason::closed;
    streams_.reserve(streams_.size() + 1);
    parts_.reserve(parts_.size() + 1);
    Ref<Stream> made;
    if (const Status status = Stream::create_captured(context_, stream.flags(), stream.priority(), *this, made);
        !status.ok())
        return status;
    streams_.push_back(made.get());
    if (const Status status = order(stream, *made); !status.ok()) return status;
    parts_.push_back(made.get());
    forked = std::move(made);
    return {};
}

Status CaptureSession::join(Stream& stream, Stream& other) {
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(hierarchy_->mutex_);
    if (const Status status = capturing(); !status.ok()) return status;
    if (stream.is_over() || other.is_over()) return Reason::closed;
    const auto heir = heirs_.emplace(&other, &stream).first;
    const Status status = order(other, stream);
    if (!status.ok()) {
        heirs_.erase(heir);
        return status;
    }
    other.end_captured_work();
    parts_.erase(std::remove(parts_.begin(), parts_.end(), &other), parts_.end());
    return {};
}

Ref<Stream> CaptureSession::heir(Stream& stream) {
    const Lock lock(hierarchy_->mutex_);
    Stream* last = &stream;
    for (auto next = heirs_.find(last); next != heirs_.end(); next = heirs_.find(last)) last = next->second;
    return Ref<Stream>(*last);
}

void CaptureSession::leave(Stream& part) noexcept {
    const Lock lock(hierarchy_->mutex_);
    const bool is_unjoined = std::find(parts_.begin(), parts_.end(), &part) != parts_.end();
    if (is_unjoined && is_capturing()) hierarchy_->is_spoilt_ = true;
    part.end_captured_work();
}

Status CaptureSession::order(Stream& first, Stream& then) {
    CUevent event = nullptr;  // its own: the capture has it, and who recorded it elsewhere would crash the driver
    Status status = context_.observe(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    if (!status.ok()) return status;
    status = context_.observe(cu.cuEventRecord(event, first.cu_stream()));
    if (status.ok()) status = context_.observe(cu.cuStreamWaitEvent(then.cu_stream(), event, 0));
    context_.destroy_event(event);
    return status;
}

Status CaptureSession::find_place(Stream& stream, Place& place) noexcept {
    if (const Status status = capturing(); !status.ok()) return status;
    if (stream.is_over()) return Reason::closed;  // joined meanwhile: nothing comes behind what is added
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned long long id = 0;
    const Status status = context_.observe(
        cu.cuStreamGetCaptureInfo_v2(stream.cu_stream(), &state, &id, &place.graph, &place.before, &place.count));
    if (status.ok() && state != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return Status::from_driver(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Entry::cuStreamGetCaptureInfo_v2);
    return status;
}

Status CaptureSession::add(Stream& stream, const Add& add) {
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(hierarchy_->mutex_);
    Place place;
    if (const Status status = find_place(stream, place); !status.ok()) return status;
    CUgraphNode node = nullptr;
    Status status = context_.observe(add(place, node));
    if (!status.ok()) return status;
    status = context_.observe(
        cu.cuStreamUpdateCaptureDependencies(stream.cu_stream(), &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    if (!status.ok()) hierarchy_->is_spoilt_ = true;  // nothing comes behind the node
    return status;
}

Status CaptureSession::use(Stream& stream, const Use& use) {
    const ContextScope scope(context_);
    if (!scope.status().ok()) return scope.status();
    const Lock lock(hierarchy_->mutex_);
    Place place;
    if (const Status status = find_place(stream, place); !status.ok()) return status;
    return context_.observe(use(place.graph));
}

Status CaptureSession::begin_call() noexcept {
    hierarchy_->mutex_.lock();
    const Status status = capturing();
    if (!status.ok()) hierarchy_->mutex_.unlock();
    return status;
}

void CaptureSession::keep(deferred_release::Retention retention) {
    hierarchy_->operands_->all_.push_back(std::move(retention));
}

void CaptureSession::keep_no_more() noexcept { hierarchy_->operands_->all_.pop_back(); }

Status CaptureSession::find_node(Stream& stream, CUgraphNode& node) noexcept {
    Place place;
    const Status status = find_place(stream, place);
    if (status.ok()) node = place.before[0];
    else hierarchy_->is_spoilt_ = true;
    return status;
}

void CaptureSession::note(Ref<Shared> note) { hierarchy_->operands_->notes_.push_back(std::move(note)); }

CapturedMemory& CaptureSession::memory() {
    Ref<CapturedMemory>& memory = hierarchy_->operands_->memory_;
    if (!memory) memory = Ref<CapturedMemory>::adopt(new CapturedMemory);
    return *memory;
}

void CaptureSession::note_condition() noexcept { ++hierarchy_->operands_->unused_conditions_; }
void CaptureSession::note_conditional_node() noexcept { --hierarchy_->operands_->unused_conditions_; }

void CaptureSession::end_call() noexcept { hierarchy_->mutex_.unlock(); }

}  // namespace ftcuda::core
