#include "stream.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../sync/fork.hpp"
#include "../sync/may_wait.hpp"
#include "../sync/limit.hpp"
#include "event.hpp"

#include <thread>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

// A mark in a stream with nothing to do is reached within microseconds, but not at once.
constexpr int finished_looks = 32;

thread_local char this_thread;  // whose address names the thread for as long as it lives

// Ids for drivers without cuStreamGetId (before 12.0). Owned streams count; the top bits keep them apart from ids made
// of handles and threads, where nothing better is to be had.
std::atomic<std::uint64_t> next_id{std::uint64_t{1} << 62};

std::uint64_t id_of_address(const void* address) noexcept {
    return (std::uint64_t{1} << 63) | reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

Status Stream::create(Context& context, unsigned flags, int priority, Ref<Stream>& stream) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    CUstream cu_stream = nullptr;
    Status status = context.observe(cu.cuStreamCreateWithPriority(&cu_stream, flags, priority));
    if (!status.ok()) return status;
    Ref<Stream> made = Ref<Stream>::adopt(new Stream(context, cu_stream, Kind::owned));
    status = made->read_attributes();
    if (!status.ok()) {
        made->close();
        return status;
    }
    stream = std::move(made);
    return {};
}

Status Stream::create_captured(Context& context, unsigned flags, int priority, CaptureSession& session,
                               Ref<Stream>& stream) {
    Ref<Stream> made;
    if (const Status status = create(context, flags, priority, made); !status.ok()) return status;
    made->session_ = Ref<CaptureSession>(session);
    made->note_capture();
    made->lifetime_.begin_exclusive();  // for ever
    stream = std::move(made);
    return {};
}

Status Stream::wrap(CUstream cu_stream, Ref<Stream>& stream) {
    if (is_forked()) return Reason::forked;
    // The stream knows its context; the context knows its device only while it is current.
    CUcontext owner = nullptr;
    if (const Status status = cu.cuStreamGetCtx(cu_stream, &owner); !status.ok()) return status;
    CUcontext before = nullptr;
    if (const Status status = cu.cuCtxGetCurrent(&before); !status.ok()) return status;
    if (const Status status = cu.cuCtxSetCurrent(owner); !status.ok()) return status;
    CUdevice cu_device = 0;
    const Status asked = cu.cuCtxGetDevice(&cu_device);
    if (const Status status = cu.cuCtxSetCurrent(before); !status.ok()) return status;
    if (!asked.ok()) return asked;

    Device* device = nullptr;
    if (const Status status = Device::get(cu_device, device); !status.ok()) return status;
    Context* context = nullptr;
    if (const Status status = device->context(context); !status.ok()) return status;
    if (context->cu_context() != owner) return Reason::not_supported;  // a stream outside the primary context
    Ref<Stream> made = Ref<Stream>::adopt(new Stream(*context, cu_stream, Kind::foreign));
    const Status status = made->read_attributes();
    if (!status.ok()) {
        made->close();
        return status;
    }
    stream = std::move(made);
    return {};
}

Status Stream::find_default(Context& context, CUstream token, Stream*& stream) {
    std::atomic<Stream*>& published = token == CU_STREAM_LEGACY ? context.legacy_stream_ : context.per_thread_stream_;
    stream = published.load(std::memory_order_acquire);
    if (stream != nullptr) return {};
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    Ref<Stream> mine = Ref<Stream>::adopt(new Stream(context, token, Kind::default_token));
    if (const Status status = mine->read_attributes(); !status.ok()) return status;
    FTCUDA_SCHEDULE_POINT("publish a default stream");
    if (published.compare_exchange_strong(stream, mine.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
        stream = mine.detach();  // kept for as long as the context, which is for ever
    }
    return {};
}

Status Stream::read_attributes() noexcept {
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    if (const Status status = context_->observe(cu.cuStreamGetFlags(cu_stream_, &flags_)); !status.ok()) return status;
    if (const Status status = context_->observe(cu.cuStreamGetPriority(cu_stream_, &priority_)); !status.ok())
        return status;
    if (cu_stream_ == CU_STREAM_PER_THREAD) return {};
    if (cu.cuStreamGetId) {
        unsigned long long id = 0;
        if (const Status status = context_->observe(cu.cuStreamGetId(cu_stream_, &id)); !status.ok()) return status;
        id_ = id + 1;  // ours start at 1: 0 means "ask for the calling thread"
    } else if (kind_ == Kind::owned) {
        id_ = next_id.fetch_add(1, std::memory_order_relaxed);
    } else {
        id_ = id_of_address(cu_stream_);
    }
    return {};
}

std::uint64_t Stream::per_thread_id() const noexcept {
    unsigned long long id = 0;
    const ContextScope scope(*context_);
    if (scope.status().ok() && cu.cuStreamGetId(cu_stream_, &id).ok()) return id + 1;
    return id_of_address(&this_thread);
}

void Stream::close() noexcept {
    if (is_default() || session_) return;
    if (lifetime_.close()) destroy();
    section_.wake();  // threads that wait for a section must see that there is no stream any more
}

void Stream::close_captured() noexcept {
    if (lifetime_.close()) destroy();
}

void Stream::destroy() noexcept {
    if (kind_ == Kind::owned && context_->may_destroy()) {
        if (deferred_release::put_off([this] { destroy(); })) return;
        const RelaxedCapture relaxed;
        deferred_errors::add(context_->observe(cu.cuStreamDestroy_v2(cu_stream_)), "destroy", "stream");
    }
    release();
}

Status Stream::synchronize(const Limit& limit) noexcept {
    const Lease<Stream> lease(*this);
    if (!lease) return Reason::closed;
    if (session_) return Reason::builders;  // to ask it would end the capture
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    if (limit.is_none()) return context_->observe(cu.cuStreamSynchronize(cu_stream_));
    return context_->observe(wait_until_ready(limit, false, [&] { return cu.cuStreamQuery(cu_stream_); }));
}

Status Stream::query(bool& done) noexcept {
    const Lease<Stream> lease(*this);
    if (!lease) return Reason::closed;
    if (session_) return Reason::builders;
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    const Status status = cu.cuStreamQuery(cu_stream_);
    done = status.ok();
    return status.is(CUDA_ERROR_NOT_READY) ? Status() : context_->observe(status);
}

Status Stream::arm(Completion& completion) {
    const Lease<Stream> lease(*this);
    if (!lease) return Reason::closed;
    if (session_) return Reason::builders;
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    {
        const Alone alone(*this);
        FTCUDA_SCHEDULE_POINT("arm a completion");
        if (alone) return completion.arm(cu_stream_, id(), false);
    }
    bool capturing = false;
    if (const Status status = is_capturing(capturing); !status.ok()) return status;
    if (capturing) return Reason::capturing;
    if (const Status status = completion.arm(cu_stream_, id(), true); !status.ok()) return status;
    // Others may have begun a capture meanwhile, and then the event may be part of that: whoever asked for it would end
    // the capture.
    const Status status = is_capturing(capturing);
    if (status.ok() && !capturing) return status;
    completion.forget_event();
    return status.ok() ? Status(Reason::capturing) : status;
}

Stream::Alone::Alone(Stream& stream) noexcept : stream_(stream) {
    stream.alone_.fetch_add(1, std::memory_order_seq_cst);
    is_alone_ = !stream.may_be_captured_.load(std::memory_order_seq_cst);
    if (!is_alone_) stream.alone_.fetch_sub(1, std::memory_order_release);
}

void Stream::note_capture() noexcept {
    may_be_captured_.store(true, std::memory_order_seq_cst);
    while (alone_.load(std::memory_order_seq_cst) != 0 && !is_forked()) {
        FTCUDA_SCHEDULE_POINT("wait for who is alone");
        std::this_thread::yield();
    }
}

Status Stream::mark(CUevent& event) noexcept {
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    const Alone alone(*this);
    bool capturing = false;
    if (!alone) {
        if (const Status status = is_capturing(capturing); !status.ok()) return status;
        if (capturing) return Reason::capturing;
    }
    if (event == nullptr) {
        if (const Status status = context_->acquire_event(event); !status.ok()) return status;
    }
    FTCUDA_SCHEDULE_POINT("mark a stream");
    Status status = context_->observe(cu.cuEventRecord(event, cu_stream_));
    if (!status.ok()) {
        context_->release_event(std::exchange(event, nullptr));
        return status;
    }
    if (alone || cu_stream_ == CU_STREAM_LEGACY) return {};  // which is part of no capture
    status = is_capturing(capturing);
    if (status.ok() && !capturing) return {};
    context_->destroy_event(std::exchange(event, nullptr));
    return status.ok() ? Status(Reason::capturing) : status;
}

Status Stream::mark_surely(CUevent& event) noexcept {
    if (const Status status = mark(event); !status.ok() || !may_be_captured()) return status;
    if (!is_of_capture(context_->ask(event))) return {};
    context_->destroy_event(std::exchange(event, nullptr));
    return Reason::capturing;
}

Status Stream::is_idle(bool& idle) noexcept {
    idle = static_cast<bool>(session_);  // all that was submitted is its graph's
    if (idle) return {};
    const Alone alone(*this);
    if (!alone) return {};
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    const Status status = cu.cuStreamQuery(cu_stream_);
    idle = status.ok();
    return status.is(CUDA_ERROR_NOT_READY) ? Status() : context_->observe(status);
}

Status Stream::wait_until_idle() noexcept {
    if (session_) return {};  // all that was submitted is its graph's
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    CUevent event = nullptr;
    if (const Status status = mark(event); !status.ok()) return status;
    const Status status = context_->observe(cu.cuEventSynchronize(event));
    context_->release_event(event, status);
    return is_of_capture(status) ? Status(Reason::capturing) : status;
}

void Stream::retain_until_done(deferred_release::Retention retention) noexcept {
    if (!retention) return;  // it is a graph's
    CUevent event = nullptr;
    const Status status = mark(event);
    if (status.ok()) return deferred_release::release_after(*context_, event, std::move(retention));
    if (!context_->usable().ok()) return;  // no work uses anything any more
    deferred_release::Mark later;
    if (status.reason() == Reason::capturing) later = mark_later();
    else deferred_errors::add(status, "retain", "an array");
    if (later) deferred_release::release_after_capture(*context_, std::move(later), std::move(retention));
    else deferred_release::release_when_idle(*context_, std::move(retention));
}

deferred_release::Mark Stream::mark_later() noexcept {
    if (!keeps_handle()) return {};
    return [kept = std::make_shared<KeptStream>(*this)](CUevent& event) { return kept->get()->mark(event); };
}

bool Stream::is_finished() noexcept {
    // Acquire, in load(): whoever sees the last submission gone sees what it submitted.
    const Lifetime::Word word = lifetime_.load();
    if ((word & Lifetime::closing) == 0 || (word & Lifetime::inner_leases) != 0) return false;
    if (!may_be_captured()) {
        bool idle = false;
        return is_idle(idle).ok() && idle;
    }
    CUevent event = nullptr;
    if (!mark(event).ok()) return false;
    Status status;
    for (int looks = finished_looks; looks != 0; --looks) {
        status = context_->ask(event);
        if (!status.is(CUDA_ERROR_NOT_READY)) break;
        std::this_thread::yield();
    }
    context_->release_event(event, status);
    return status.ok();
}

Status Stream::is_capturing(bool& capturing) const noexcept {
    capturing = false;
    if (!may_be_captured()) return {};
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    const Status asked = context_->observe(cu.cuStreamIsCapturing(cu_stream_, &status));
    capturing = status != CU_STREAM_CAPTURE_STATUS_NONE;
    return asked;
}

std::uint64_t Stream::find_capture() const noexcept {
    bool capturing = false;
    unsigned long long id = id_of_address(cu_stream_);  // where the driver has no numbers, of each stream another one
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    Status status;
    if (cu.cuStreamGetCaptureInfo_v2) {
        status = context_->observe(cu.cuStreamGetCaptureInfo_v2(cu_stream_, &state, &id, nullptr, nullptr, nullptr));
        capturing = state != CU_STREAM_CAPTURE_STATUS_NONE;
    } else {
        status = is_capturing(capturing);
    }
    return status.ok() && capturing ? id : 0;
}

Status Stream::captured_graph(bool& capturing, CUgraph& graph) const noexcept {
    graph = nullptr;
    if (!cu.cuStreamGetCaptureInfo_v2) return is_capturing(capturing);
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned long long id = 0;
    const Status asked =
        context_->observe(cu.cuStreamGetCaptureInfo_v2(cu_stream_, &status, &id, &graph, nullptr, nullptr));
    capturing = status != CU_STREAM_CAPTURE_STATUS_NONE;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) graph = nullptr;
    return asked;
}

Status Stream::record(Event& event) noexcept {
    if (&event.context() != context_) return Reason::wrong_device;
    const Submission submission(*this);
    if (!submission.status().ok()) return submission.status();
    const Lease<Event> lease(event);
    if (!lease) return Reason::closed;
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    if (event.session() != session_.get()) return Reason::other_capture;
    return event.record(*this);
}

Status Stream::wait(Event& event) noexcept {
    const Submission submission(*this);
    if (!submission.status().ok()) return submission.status();
    const Lease<Event> lease(event);
    if (!lease) return Reason::closed;
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    if (event.may_be_captured() || may_be_captured()) return wait_captured(event);
    return context_->observe(cu.cuStreamWaitEvent(cu_stream_, event.cu_event(), 0));
}

Status Stream::wait_captured(Event& event) noexcept {
    if (event.session() != session_.get()) return Reason::other_capture;
    if (event.may_be_captured()) note_capture();
    return context_->observe(cu.cuStreamWaitEvent(cu_stream_, event.cu_event(), 0));
}

Status Stream::wait(Context& context, CUevent event) noexcept {
    const Submission submission(*this);
    if (!submission.status().ok()) return submission.status();
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    bool capturing = false;
    if (const Status status = is_capturing(capturing); !status.ok()) return status;
    if (capturing) return Reason::capturing;
    const Status status = context_->observe(cu.cuStreamWaitEvent(cu_stream_, event, 0));
    if (status.ok()) context.release_event(event);
    return status;
}

void Stream::release_event(CUevent event) const {
    // A capture that had it and is over asks for nothing any more. The legacy stream is part of none.
    bool capturing = false;
    if (may_be_captured() && cu_stream_ != CU_STREAM_LEGACY) {
        const ContextScope scope(*context_);
        const Status status = scope.status().ok() ? is_capturing(capturing) : scope.status();
        deferred_errors::add(status, "ask for a capture of", "stream");
        capturing = capturing || !status.ok();
    }
    if (capturing) context_->destroy_event(event);
    else context_->release_event(event);
}

Status Stream::wait(Stream& other) noexcept {
    // To the driver, who waits for what is captured becomes part of that; who is captured waits for nothing else.
    if (other.session_.get() != session_.get()) return Reason::other_capture;
    // A private event: record and wait on a shared one are two steps that another thread's record may come between.
    CUevent event = nullptr;
    KeptStream kept;  // until it is asked whether a capture has the event
    {
        const Submission submission(other);
        if (!submission.status().ok()) return submission.status();
        kept = KeptStream(other);
        const ContextScope scope(other.context());
        if (!scope.status().ok()) return scope.status();
        if (const Status status = other.context().record(other.cu_stream_, event); !status.ok()) return status;
    }
    Status status;
    {
        const Submission submission(*this);
        status = submission.status();
        if (status.ok()) {
            const ContextScope scope(*context_);
            status = scope.status();
            if (other.may_be_captured()) note_capture();
            if (status.ok()) status = context_->observe(cu.cuStreamWaitEvent(cu_stream_, event, 0));
        }
    }
    other.release_event(event);
    return status;
}

Status Stream::begin_submission() noexcept {
    if (const Status status = may_wait(); !status.ok()) return status;
    for (;;) {
        const bool mine = section_.is_mine();
        if (mine) {
            if (const Status status = section_.check_task(); !status.ok()) return status;
        }
        const Lifetime::Word refused =
            lifetime_.enter(Lifetime::inner, mine ? Lifetime::closing : Lifetime::closing | Lifetime::exclusive);
        if (refused == 0) {
            // Another thread may have ended this one's section, and a third begun one, before this one was inside. The
            // word says so: who was inside first is waited for, and who comes after a section began sees its owner.
            if (!mine || section_.is_mine()) return {};
            end_submission();
            continue;
        }
        if ((refused & Lifetime::closing) != 0) return Reason::closed;
        if (session_) return begin_captured();
        if (const Status status = section_.wait(); !status.ok()) return status;
    }
}

// One thread at a time, by the session's lock; the reference keeps this object until the lock is given back.
Status Stream::begin_captured() noexcept {
    if (is_over()) return Reason::closed;
    if (const Status status = session_->begin_call(); !status.ok()) return status;
    if (is_over() || lifetime_.enter(Lifetime::inner, Lifetime::closing) != 0) {
        session_->end_call();
        return Reason::closed;
    }
    retain();
    return {};
}

void Stream::end_submission() noexcept {
    const Lifetime::Word before = lifetime_.leave(Lifetime::inner);
    if ((before & Lifetime::exclusive) != 0) return end_slowly(before);
    if (Lifetime::last(before, Lifetime::inner)) destroy();  // after that nothing may be left of this object
}

void Stream::end_slowly(Lifetime::Word before) noexcept {
    if (session_) return end_captured(before);
    // A section waits for the submissions before it, and this may be the last.
    if ((before & Lifetime::inner_leases) == Lifetime::inner) section_.wake();
    if (Lifetime::last(before, Lifetime::inner)) destroy();
}

void Stream::end_captured(Lifetime::Word before) noexcept {
    session_->end_call();
    if (Lifetime::last(before, Lifetime::inner)) destroy();
    release();
}

}  // namespace ftcuda::core
