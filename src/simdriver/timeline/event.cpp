// Exports: events, waiting for them, and their times.
#include "../calls/gate.hpp"
#include "../checkers/double_destruction.hpp"
#include "../checkers/lost_captures.hpp"
#include "../checkers/stale_handles.hpp"
#include "../schedule/clock.hpp"
#include "capture_rules.hpp"
#include "event.hpp"
#include "recording.hpp"
#include "stream.hpp"
#include "timeline.hpp"

namespace ftcuda::sim {

CUresult find_event(CUevent handle, std::shared_ptr<Event>& event) {
    event = stale_handles::find(driver_state().events, handle, "event");
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    return event->context->failure;
}

Work prepare_record(Event& event) {
    event.reached_at = std::make_shared<double>(-1.0);
    Work work;
    work.run = [reached_at = event.reached_at] {
        const double now = clock::now_milliseconds();
        const Guard inner(driver_state().mutex);
        *reached_at = now;
        return CUDA_SUCCESS;
    };
    return work;
}

FTCUDA_SIM_EXPORT CUresult cuEventCreate(CUevent* handle, unsigned flags) {
    FTCUDA_SIM_ENTER(cuEventCreate);
    const Guard lock(driver_state().mutex);
    Context* context = nullptr;
    if (const CUresult result = current(context); result != CUDA_SUCCESS) return result;
    auto event = std::make_shared<Event>();
    event->context = context;
    event->flags = flags;
    *handle = reinterpret_cast<CUevent>(driver_state().events.add(event));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuEventDestroy_v2(CUevent handle) {
    FTCUDA_SIM_ENTER(cuEventDestroy_v2);
    const Guard lock(driver_state().mutex);
    return double_destruction::remove(driver_state().events, handle, "event destroyed") ? CUDA_SUCCESS
                                                                                        : CUDA_ERROR_INVALID_HANDLE;
}

namespace {

CUresult refuse_captured(const std::shared_ptr<Capture>& capture) {
    if (!is_live(capture)) return CUDA_ERROR_INVALID_VALUE;
    capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult record_event(CUevent event_handle, CUstream handle, bool as_node) {
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Event> event;
    if (const CUresult result = find_event(event_handle, event); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
    if (as_node && !stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    if (as_node) {
        record(*stream, {RecordOperation{event_handle, event}, {}});
        return CUDA_SUCCESS;
    }
    if (stream->capture != event->capture && is_live(event->capture)) lost_captures::event_recorded_by_others();
    event->capture = stream->capture;
    event->captured = stream->captured;
    if (!stream->capture) event->point = submit(*stream, prepare_record(*event));
    return CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
    FTCUDA_SIM_ENTER(cuEventRecord);
    return record_event(event, stream, false);
}

FTCUDA_SIM_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    FTCUDA_SIM_ENTER(cuEventRecordWithFlags);
    if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    return record_event(event, stream, flags == CU_EVENT_RECORD_EXTERNAL);
}

FTCUDA_SIM_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
    FTCUDA_SIM_ENTER(cuStreamWaitEvent);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Stream> stream;
    if (const CUresult result = find_stream(handle, stream); result != CUDA_SUCCESS) return result;
    std::shared_ptr<Event> event;
    if (const CUresult result = find_event(event_handle, event); result != CUDA_SUCCESS) return result;
    if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_submission(*stream); result != CUDA_SUCCESS) return result;
    if (flags == CU_EVENT_WAIT_EXTERNAL) {
        if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
        record(*stream, {WaitOperation{event_handle, event}, {}});
        return CUDA_SUCCESS;
    }
    if (event->capture) {
        if (!is_live(event->capture)) {
            if (stream->capture) stream->capture->invalidated = true;
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (stream->capture && stream->capture != event->capture) {
            stream->capture->invalidated = event->capture->invalidated = true;
            return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        }
        join(event->capture, stream, event->captured);
        return CUDA_SUCCESS;
    }
    if (stream->capture && event->point.queue == nullptr) return CUDA_SUCCESS;  // it was never recorded
    if (stream->capture) {
        stream->capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    Work work;
    work.after.push_back(event->point);
    submit(*stream, std::move(work));
    return CUDA_SUCCESS;
}

FTCUDA_SIM_EXPORT CUresult cuEventQuery(CUevent handle) {
    FTCUDA_SIM_ENTER(cuEventQuery);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Event> event;
    if (const CUresult result = find_event(handle, event); result != CUDA_SUCCESS) return result;
    if (event->capture) return refuse_captured(event->capture);
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    return ask(event->point);
}

FTCUDA_SIM_EXPORT CUresult cuEventSynchronize(CUevent handle) {
    FTCUDA_SIM_ENTER(cuEventSynchronize);
    Guard lock(driver_state().mutex);
    std::shared_ptr<Event> event;
    if (const CUresult result = find_event(handle, event); result != CUDA_SUCCESS) return result;
    if (event->capture) return refuse_captured(event->capture);
    if (const CUresult result = forbid_during_capture(); result != CUDA_SUCCESS) return result;
    return wait_for(lock, *event->context, event->point);
}

namespace {

// Milliseconds from one event to the other, by the clock at the moments when the work before them was done.
CUresult elapsed(float* milliseconds, const Event& start, const Event& end) {
    if (start.context != end.context) return CUDA_ERROR_INVALID_HANDLE;
    if (((start.flags | end.flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    if (!start.reached_at || !end.reached_at) return CUDA_ERROR_INVALID_HANDLE;
    if (!start.point.reached() || !end.point.reached()) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(*end.reached_at - *start.reached_at);
    return CUDA_SUCCESS;
}

}  // namespace

FTCUDA_SIM_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start_handle, CUevent end_handle) {
    FTCUDA_SIM_ENTER(cuEventElapsedTime);
    const Guard lock(driver_state().mutex);
    std::shared_ptr<Event> start;
    std::shared_ptr<Event> end;
    if (const CUresult result = find_event(start_handle, start); result != CUDA_SUCCESS) return result;
    if (const CUresult result = find_event(end_handle, end); result != CUDA_SUCCESS) return result;
    return elapsed(milliseconds, *start, *end);
}

// It does not tell of work that failed: cuEventQuery does.
FTCUDA_SIM_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start_handle, CUevent end_handle) {
    FTCUDA_SIM_ENTER(cuEventElapsedTime_v2);
    const Guard lock(driver_state().mutex);
    const std::shared_ptr<Event> start = stale_handles::find(driver_state().events, start_handle, "event");
    const std::shared_ptr<Event> end =
        start ? stale_handles::find(driver_state().events, end_handle, "event") : nullptr;
    if (!start || !end) return CUDA_ERROR_INVALID_HANDLE;
    return elapsed(milliseconds, *start, *end);
}

}  // namespace ftcuda::sim
