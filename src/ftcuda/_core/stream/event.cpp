#include "event.hpp"

#include "../../_driver/table.hpp"
#include "../completion/deferred_release.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../sync/limit.hpp"

#include <thread>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

Status Event::create(Context& context, unsigned flags, CaptureSession* session, Ref<Event>& event) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    CUevent cu_event = nullptr;
    if (const Status status = context.observe(cu.cuEventCreate(&cu_event, flags)); !status.ok()) return status;
    Ref<CaptureSession> mine;
    if (session != nullptr) mine = Ref<CaptureSession>(*session);
    event = Ref<Event>::adopt(new Event(context, cu_event, flags, std::move(mine)));
    return {};
}

void Event::destroy() noexcept {
    if (!context_->may_destroy()) return;
    if (deferred_release::put_off([self = Ref<Event>(*this)] { self->destroy(); })) return;
    const RelaxedCapture relaxed;
    deferred_errors::add(context_->observe(cu.cuEventDestroy_v2(cu_event_)), "destroy", "event");
}

Status Event::synchronize(const Limit& limit) noexcept {
    const Lease<Event> lease(*this);
    if (!lease) return Reason::closed;
    if (session_) return Reason::builders;
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    if (limit.is_none()) return context_->observe(cu.cuEventSynchronize(cu_event_));
    const bool sleeps = (flags_ & CU_EVENT_BLOCKING_SYNC) != 0;
    return context_->observe(wait_until_ready(limit, sleeps, [&] { return cu.cuEventQuery(cu_event_); }));
}

Status Event::query(bool& done) noexcept {
    const Lease<Event> lease(*this);
    if (!lease) return Reason::closed;
    if (session_) return Reason::builders;
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    const Records before = records_.load(std::memory_order_acquire);
    FTCUDA_SCHEDULE_POINT("query an event");
    const Status status = cu.cuEventQuery(cu_event_);
    done = status.ok();
    if (done && (before & (in_progress | shared)) == 0) known_done_.store(before, std::memory_order_release);
    return status.is(CUDA_ERROR_NOT_READY) ? Status() : context_->observe(status);
}

Status Event::arm(Completion& completion) {
    const Lease<Event> lease(*this);
    if (!lease) return Reason::closed;
    if (session_) return Reason::builders;
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    return completion.arm(cu_event_);
}

Status Event::record(Stream& stream) noexcept {
    if (stream.may_be_captured()) records_.fetch_or(captured, std::memory_order_acq_rel);
    const Records before = records_.fetch_add(1, std::memory_order_acq_rel);
    if ((before & captured) != 0 && !session_) {  // a session's streams take turns
        records_.fetch_sub(1, std::memory_order_acq_rel);
        return record_beside_captures(stream);
    }
    FTCUDA_SCHEDULE_POINT("record an event");
    const Status status = context_->observe(cu.cuEventRecord(cu_event_, stream.cu_stream()));
    records_.fetch_add(ended - 1, std::memory_order_acq_rel);
    return status;
}

Status Event::record_beside_captures(Stream& stream) noexcept {
    // Who came before the mark may be in the driver without the lock.
    const auto is_to_wait = [this] {
        const Records now = records_.load(std::memory_order_acquire);
        return (now & locked) == 0 && (now & in_progress) != 0;
    };
    while (is_to_wait()) {
        FTCUDA_SCHEDULE_POINT("wait for who records");
        std::this_thread::yield();
    }
    records_.fetch_or(locked, std::memory_order_acq_rel);
    const Lock lock(mutex_);
    if (is_of_another_capture(stream)) return Reason::captured_event;
    records_.fetch_add(1, std::memory_order_acq_rel);
    const Status status = context_->observe(cu.cuEventRecord(cu_event_, stream.cu_stream()));
    records_.fetch_add(ended - 1, std::memory_order_acq_rel);
    captured_in_ = {};
    if (!status.ok() || !stream.keeps_handle()) return status;
    capture_ = stream.find_capture();
    if (capture_ != 0) captured_in_ = Ref<Stream>(stream);
    return status;
}

// The driver crashes where a stream is asked for the number of its capture while others capture it.
bool Event::is_of_another_capture(const Stream& stream) noexcept {
    if (!captured_in_) return false;
    const Lease<Stream> lease(*captured_in_);
    bool capturing = false;
    return lease && captured_in_->is_capturing(capturing).ok() && capturing && stream.find_capture() != capture_;
}

Status Event::elapsed(Event& start, Event& end, float& milliseconds) noexcept {
    if (&start.context() != &end.context()) return Reason::wrong_device;
    const Lease<Event> start_lease(start);
    if (!start_lease) return Reason::closed;
    const Lease<Event> end_lease(end);
    if (!end_lease) return Reason::closed;
    if (start.session_ || end.session_) return Reason::builders;
    const ContextScope scope(start.context());
    if (!scope.status().ok()) return scope.status();
    const Records start_before = start.records_.load(std::memory_order_acquire);
    const Records end_before = end.records_.load(std::memory_order_acquire);
    FTCUDA_SCHEDULE_POINT("time events");
    const Status status = start.context().observe(cu.cuEventElapsedTime(&milliseconds, start.cu_event_, end.cu_event_));
    // Beside a record in another thread the driver takes a time from one that has none yet (580: minus 57 years). It is
    // not reached.
    const bool recorded = start.records_.load(std::memory_order_acquire) != start_before ||
                          end.records_.load(std::memory_order_acquire) != end_before ||
                          ((start_before | end_before) & in_progress) != 0;
    return recorded && status.ok() ? Status::from_driver(CUDA_ERROR_NOT_READY, Entry::cuEventElapsedTime) : status;
}

}  // namespace ftcuda::core
