#include "buffer.hpp"

#include "../../_driver/table.hpp"
#include "../completion/context_wait.hpp"
#include "../completion/deferred_release.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../sync/fork.hpp"
#include "../sync/limit.hpp"
#include "../sync/may_wait.hpp"
#include "graph_pool.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

// That a thread empties caches because it found no memory. What it took out of them is nobody's until it has freed it.
class Reclaiming {
public:
    Reclaiming() noexcept { threads_.fetch_add(1, std::memory_order_relaxed); }
    ~Reclaiming() { threads_.fetch_sub(1, std::memory_order_relaxed); }
    Reclaiming(const Reclaiming&) = delete;
    Reclaiming& operator=(const Reclaiming&) = delete;

    static bool by_others() noexcept { return threads_.load(std::memory_order_relaxed) > 1; }

private:
    static inline std::atomic<int> threads_{0};  // relaxed: a hint, which stands for nothing else
};

// Makes what `stream` does from now on wait for the work behind `use`; `capturing` if a capture may have that. With the
// context of `stream` current.
Status order_after(const Use& use, CUstream stream) noexcept {
    Context& context = use.stream->context();
    CUevent event = use.event;
    if (event == nullptr) {
        if (const Status status = use.stream->mark(event); !status.ok()) return status;
    }
    const RelaxedCapture relaxed;
    const Status status = context.observe(cu.cuStreamWaitEvent(stream, event, 0));
    if (use.event == nullptr) context.release_event(event);
    return is_of_capture(status) ? Status(Reason::capturing) : status;
}

// Waits for it in the host.
Status wait_for(const Use& use) noexcept {
    if (use.event == nullptr) return use.stream->wait_until_idle();
    Context& context = use.stream->context();
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    const Status status = context.observe(cu.cuEventSynchronize(use.event));
    return is_of_capture(status) ? Status(Reason::capturing) : status;
}

Status ask_whether_idle(const Use& use, bool& idle) noexcept {
    if (use.event == nullptr) return use.stream->is_idle(idle);
    const Status status = use.stream->context().ask(use.event);
    idle = status.ok();
    if (is_of_capture(status)) return Reason::capturing;
    return status.is(CUDA_ERROR_NOT_READY) ? Status() : status;
}

}  // namespace

// The graph ends after its launches: then the memory goes, unless somebody else has the buffer.
class Buffer::GraphLease final : public Shared {
public:
    explicit GraphLease(Buffer& buffer) noexcept : buffer_(buffer) { buffer.enter(); }  // which nobody has closed yet

private:
    ~GraphLease() override { buffer_->leave(); }

    const Ref<Buffer> buffer_;
};

Status Buffer::check_stream(const MemoryResource& resource, const Stream* stream) noexcept {
    const CaptureSession* const session = stream != nullptr ? stream->session() : nullptr;
    if (!resource.is_for_graphs()) return session != nullptr && resource.is_pool() ? Reason::in_builder : Reason::none;
    if (is_forked()) return Reason::forked;
    if (session == nullptr) return Reason::no_builder;
    return session->is_within_another() ? Reason::in_body : Reason::none;
}

void Buffer::become_graphs(Stream& stream) {
    CaptureSession& session = *stream.session();
    captured_memory_ = Ref<CapturedMemory>(session.memory());
    allocated_in_ = Ref<Stream>(stream);
    deferred_release::Retention retention;
    deferred_release::retain(retention, Ref<Shared>::adopt(new GraphLease(*this)));
    session.keep(std::move(retention));
    captured_memory_->add(allocation_.pointer, this);
}

Status Buffer::allocate(MemoryResource& resource, std::size_t bytes, Stream* stream, Ref<Buffer>& buffer) {
    if (stream != nullptr && &stream->context() != &resource.context()) return Reason::wrong_device;
    if (const Status status = check_stream(resource, stream); !status.ok()) return status;
    Lease<MemoryResource> lease(resource);
    if (!lease) return Reason::closed;
    const Status status = allocate_inside(resource, bytes, stream, buffer);
    if (status.is(CUDA_ERROR_NOT_READY)) return Status::from_driver(CUDA_ERROR_OUT_OF_MEMORY, Entry::cuMemHostAlloc);
    if (status.ok()) lease.detach();  // the buffer's from now on: a pool lives as long as its last buffer
    return status;
}

Status Buffer::lease(MemoryResource& resource, std::size_t bytes, const StagingStore::Turn& turn, Limit limit,
                     Ref<Buffer>& buffer) {
    if (is_forked()) return Reason::forked;
    Lease<MemoryResource> lease(resource);
    if (!lease) return Reason::closed;
    limit.seconds = std::max(limit.seconds - turn.waited(), 0.0);
    const Status status = wait_until_ready(limit, true, [&]() -> Status {
        if (resource.is_closed()) return Reason::closed;
        if (!turn.has_come()) return Status::from_driver(CUDA_ERROR_NOT_READY, Entry::cuEventQuery);
        return allocate_inside(resource, bytes, nullptr, buffer);
    });
    if (status.ok()) lease.detach();
    return status;
}

Status Buffer::allocate_where_memory_is_short(MemoryResource& resource, std::size_t bytes, Stream* stream,
                                              Ref<Buffer>& buffer) {
    constexpr int attempts = 16;
    Context& context = resource.context();
    const Reclaiming mark;
    Status status;
    for (int attempt = 0; attempt < attempts; ++attempt) {
        // What of this is refused does not matter: a context that is captured in cannot be waited for, and one that is
        // broken refuses the allocation too. A pool returns what it does not use once the frees have happened.
        bool had_memory = false;
        MemoryResource::trim_caches(context, had_memory);
        synchronize(context).ignore();
        MemoryResource::trim_caches(context, had_memory);
        resource.trim(0).ignore();
        graph_pool::trim(context).ignore();
        status = allocate(resource, bytes, stream, buffer);
        if (!status.is(CUDA_ERROR_OUT_OF_MEMORY)) break;
        std::size_t free = 0, total = 0;
        const bool has_room = context.memory_info(free, total).ok() && free >= bytes;
        if (!had_memory && !has_room && !Reclaiming::by_others()) break;
    }
    return status;
}

Status Buffer::allocate_inside(MemoryResource& resource, std::size_t bytes, Stream* stream, Ref<Buffer>& buffer) {
    Context& context = resource.context();
    const auto make = [&](MemoryResource::Allocation allocation) {
        buffer = Ref<Buffer>::adopt(new Buffer(context, allocation, bytes));
        buffer->made_after_ = windows::latest();
        buffer->resource_ = Ref<MemoryResource>(resource);
        buffer->any_device_ = resource.kind() != MemoryKind::device;
    };
    if (bytes == 0) {
        make({});
        return {};
    }
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    MemoryResource::Allocation allocation;
    if (stream == nullptr) {
        const Status status = resource.allocate(bytes, nullptr, allocation);
        if (status.ok()) make(allocation);
        return status;
    }
    const Submission submission(*stream);
    if (!submission.status().ok()) return submission.status();
    if (resource.is_pool() && stream->session() == nullptr && stream->may_be_captured()) {
        bool capturing = false;  // by others, whose graph would allocate it
        if (const Status status = stream->is_capturing(capturing); !status.ok()) return status;
        if (capturing) return Reason::capturing;
    }
    const Status status = resource.allocate(bytes, stream, allocation);
    if (!status.ok()) return status;
    make(allocation);
    if (resource.is_for_graphs()) {
        buffer->become_graphs(*stream);
        return {};
    }
    if (!stream->is_default()) buffer->home_id_ = stream->id();
    buffer->uses_.begin(*stream, stream->id());
    if (stream->is_default()) buffer->mark_use(*stream);
    return {};
}

Ref<Buffer> Buffer::wrap(Context& context, CUdeviceptr pointer, std::size_t bytes, void* holder) {
    Ref<Buffer> buffer = Ref<Buffer>::adopt(new Buffer(context, {pointer}, bytes));
    buffer->any_device_ = true;  // whose memory it is, only the caller knows
    buffer->holder_ = holder;
    if (holder != nullptr && bytes != 0) buffer->window_ = windows::open(pointer, buffer->lifetime_);
    buffer->made_after_ = buffer->window_;
    return buffer;
}

Status Buffer::close(Stream* stream, bool idle, bool collected, ReleasedHolder& released) {
    if (idle) idle_.store(true, std::memory_order_relaxed);
    if (collected) collected_.store(true, std::memory_order_relaxed);
    if (put_off_close(stream)) return {};
    if (stream != nullptr) {
        if (const Status status = free_after(*stream); !status.ok()) return status;
    }
    if (lifetime_.close()) destroy(&released);  // else the last to leave does, perhaps a launch elsewhere
    return {};
}

// What would wait for a stream, or for its builder, waits for others.
bool Buffer::put_off_close(Stream* stream) {
    if (stream == nullptr && !frees_in_graph_.load(std::memory_order_relaxed)) return false;
    Ref<Stream> in;
    if (stream != nullptr) in = Ref<Stream>(*stream);
    return deferred_release::put_off([self = Ref<Buffer>(*this), in] {
        Status status;
        if (self->captured_memory_) status = self->close_in_graph(in.get());
        if (status.ok() && in) status = self->free_after(*in);
        if (status.reason() == Reason::driver) deferred_errors::add(status, "close", "buffer");
        if (self->lifetime_.close()) self->destroy(nullptr);
    });
}

Status Buffer::close_in_graph(Stream* stream) {
    if (is_forked()) return Reason::forked;
    if (!may_wait().ok()) {  // close() will come to it
        frees_in_graph_.store(true, std::memory_order_relaxed);
        return {};
    }
    if (stream != nullptr && stream->session() == nullptr) return {};
    CaptureSession& session = *allocated_in_->session();
    if (stream != nullptr && !stream->session()->shares_graph_with(session)) return Reason::memory_of_others;
    const Lease<Buffer> lease(*this);
    if (!lease) return {};
    if (stream != nullptr) {
        const Submission submission(*stream);
        return submission.status().ok() ? capture_free(*stream) : submission.status();
    }
    for (;;) {
        const Ref<Stream> in = session.heir(*allocated_in_);
        const Submission submission(*in);
        if (submission.status().ok()) return capture_free(*in);
        const bool was_joined = session.heir(*in).get() != in.get();  // by another thread, meanwhile
        if (was_joined) continue;
        const bool has_no_graph = submission.status().reason() == Reason::spoilt;
        return has_no_graph || in->is_over() || !session.is_capturing() ? Status() : submission.status();
    }
}

Status Buffer::close_in_graph_at(Stream& stream, CUdeviceptr pointer) {
    if (stream.session() == nullptr) return is_forked() ? Reason::forked : Reason::no_builder;
    const Submission submission(stream);
    if (!submission.status().ok()) return submission.status();
    Shared* const found = stream.session()->memory().find(pointer);
    if (found == nullptr) return Reason::memory_of_others;
    Buffer& buffer = static_cast<Buffer&>(*found);
    const Lease<Buffer> lease(buffer);
    return lease ? buffer.capture_free(stream) : Status(Reason::closed);
}

Status Buffer::capture_free(Stream& stream) {
    if (is_closed()) return {};  // another thread was first
    if (stream.session()->is_within_another()) return Reason::in_body;
    const ContextScope scope(*context_);
    if (!scope.status().ok()) return scope.status();
    const Status status = context_->observe(cu.cuMemFreeAsync(allocation_.pointer, stream.cu_stream()));
    if (!status.ok()) return status;
    freed_in_graph_.store(true, std::memory_order_relaxed);
    captured_memory_->remove(allocation_.pointer);
    lifetime_.close();  // before others come to the session's lock: nothing is captured behind the free
    return {};
}

Status Buffer::free_after(Stream& stream) {
    const Lease<Buffer> lease(*this);
    if (!lease) return {};
    if (&stream.context() != context_) return Reason::wrong_device;
    const Submission submission(stream);
    if (!submission.status().ok()) return submission.status();
    uses_.add(stream, stream.id());
    if (stream.is_default()) {
        mark_use(stream);
    } else {
        std::uint64_t none = 0;
        free_in_.compare_exchange_strong(none, stream.id(), std::memory_order_relaxed);
    }
    return {};
}

Status Buffer::add_use(Stream& stream) noexcept {
    if (!is_reachable_from(stream.context())) {
        leave();
        return Reason::wrong_device;
    }
    if (captured_memory_ && !stream.may_be_captured() && stream.session() == nullptr &&
        !captured_memory_->was_launched()) {
        leave();
        return Reason::unlaunched;
    }
    uses_.add(stream, stream.id());
    return {};
}

void Buffer::mark_use(Stream& stream) noexcept {
    if (!uses_.mark(stream, "use of a buffer")) unordered_.store(true, std::memory_order_relaxed);
}

void Buffer::order(CUstream stream, const Use* target, Status& status) noexcept {
    uses_.for_each([&](Use& use) {
        if (&use != target && status.ok()) status = order_after(use, stream);
    });
}

// What waits in a stream that others capture ends their capture.
bool Buffer::order_in(Stream& stream, const Use* target, FreePlan& plan) noexcept {
    const Stream::Alone alone(stream);
    if (alone) order(stream.cu_stream(), target, plan.status);
    return static_cast<bool>(alone);
}

Buffer::FreePlan Buffer::plan_in_stream() noexcept {
    FreePlan plan;
    if (unordered_.load(std::memory_order_relaxed)) return plan;
    // The stream to free in: the one named at close(), else the home stream, if it is still in the set.
    const std::uint64_t named = free_in_.load(std::memory_order_relaxed);
    const std::uint64_t wanted = named != 0 ? named : home_id_;
    const Use* target = nullptr;
    std::size_t count = 0;
    uses_.for_each([&](Use& use) {
        ++count;
        if (use.event == nullptr && use.stream_id.load(std::memory_order_relaxed) == wanted) target = &use;
    });
    // What a graph allocated a capture of others would free.
    const bool is_alone_in_it = target != nullptr && count == 1 && !captured_memory_;
    if (is_alone_in_it || (target != nullptr && order_in(*target->stream, target, plan))) {
        plan.home = target->stream;
        plan.stream = plan.home->cu_stream();
    } else {
        plan.status = context_->housekeeping_stream(plan.stream);
        order(plan.stream, nullptr, plan.status);
    }
    if (plan.status.ok()) plan.when = FreePlan::When::in_stream;
    // Work before a capture may still run, and nothing outside the capture can wait for it now.
    if (plan.status.reason() == Reason::capturing) plan.status = {};
    return plan;
}

Buffer::FreePlan Buffer::plan_now() noexcept {
    FreePlan plan;
    uses_.for_each([&](Use& use) {
        if (plan.status.ok()) plan.status = wait_for(use);
    });
    // A use that could not be marked may still run.
    if (plan.status.ok() && !unordered_.load(std::memory_order_relaxed)) plan.when = FreePlan::When::now;
    if (plan.status.reason() == Reason::capturing) plan.status = {};
    return plan;
}

Status Buffer::FreePlan::mark(Context& context, CUevent& event) const noexcept {
    return home != nullptr ? home->mark_surely(event) : context.record(stream, event);
}

Status Buffer::carry_out(const FreePlan& plan) noexcept {
    switch (plan.when) {
    case FreePlan::When::now: return resource_->free_now(allocation_.pointer);
    case FreePlan::When::in_stream:
        return resource_->free_ordered(allocation_, bytes_, plan.home, plan.stream, !uses_.is_empty());
    case FreePlan::When::when_idle: break;
    }
    resource_->free_later(allocation_, bytes_);
    return plan.status;
}

void Buffer::destroy(ReleasedHolder* released) noexcept {
    if (is_forked()) return;
    const bool has_windows = windows::latest() != made_after_;
    if (!has_windows || !waits_for_window()) free(released);
}

bool Buffer::waits_for_window() noexcept {
    if (closed_after_ == 0) closed_after_ = windows::latest();
    const bool has_memory = bytes_ != 0 && (resource_ || holder_ != nullptr);
    if (!has_memory) return false;
    retain();  // the window's, which gives it back after it has gone on with this
    FTCUDA_SCHEDULE_POINT("wait for a window");
    const bool only_closed = only_closed_ || !collected_.load(std::memory_order_relaxed);
    const CUdeviceptr begin = allocation_.pointer;
    if (windows::wait(*this, {begin, begin + bytes_, made_after_, closed_after_, only_closed})) return true;
    release_attached();
    return false;
}

void Buffer::close_window() noexcept {
    if (window_ == 0) return;
    go_on(windows::close(allocation_.pointer, window_), false);
}

void Buffer::end_collection() noexcept { go_on(windows::take_from_open(), true); }

void Buffer::go_on(windows::Waiter* waiter, bool only_closed) noexcept {
    while (waiter != nullptr) {
        Buffer& waiting = static_cast<Buffer&>(*waiter);
        waiter = waiter->next;  // before it waits for the next one
        waiting.only_closed_ = waiting.only_closed_ || only_closed;
        waiting.destroy(nullptr);
        waiting.release();
    }
}

void Buffer::free(ReleasedHolder* released) noexcept {
    if (deferred_release::put_off([self = Ref<Buffer>(*this)] { self->free(nullptr); })) return;
    if (context_->may_destroy() && put_off_for_capture()) return;
    const bool is_graphs =
        captured_memory_ && (freed_in_graph_.load(std::memory_order_relaxed) || !captured_memory_->was_launched());
    if (resource_ && bytes_ != 0 && !is_graphs && context_->may_destroy()) {
        const ContextScope scope(*context_);
        FreePlan plan{scope.status()};
        if (plan.status.ok()) plan = resource_->is_ordered() ? plan_in_stream() : plan_now();
        deferred_errors::add(carry_out(plan), "free", "buffer");
    }
    if (!holder_credits_) credit();
    if (holder_ != nullptr) hand_out(released);
    // Now, not with the memory of this object: a closed buffer must keep neither streams nor its resource.
    uses_.clear();
    if (resource_) resource_->leave();
    resource_ = {};
}

bool Buffer::put_off_for_capture() {
    if (idle_.load(std::memory_order_relaxed)) return false;
    Stream* captured = nullptr;
    uses_.for_each([&](Use& use) {
        if (captured != nullptr || use.event != nullptr || !use.stream->may_be_captured()) return;
        const ContextScope scope(use.stream->context());
        bool capturing = false;
        if (scope.status().ok() && use.stream->is_capturing(capturing).ok() && capturing && use.stream->keeps_handle())
            captured = use.stream;
    });
    if (captured == nullptr) return false;
    deferred_release::act_after_capture(*context_, captured->mark_later(),
                                        [self = Ref<Buffer>(*this)] { self->free(nullptr); });
    return true;
}

void Buffer::credit(Charge* latest) noexcept {
    // The resource inside first: one around it must not let others allocate before that one knows of the free.
    if (latest == nullptr) return;
    const std::unique_ptr<Charge> mine(latest);
    credit(mine->next);
    mine->account->credit(bytes_);
}

Status Buffer::ask_whether_idle(bool& idle) noexcept {
    idle = !unordered_.load(std::memory_order_relaxed);
    Status status;
    uses_.for_each([&](Use& use) {
        if (idle && status.ok()) status = core::ask_whether_idle(use, idle);
    });
    idle = idle && status.ok();
    return status;
}

void Buffer::hand_out(ReleasedHolder* released) noexcept {
    CUevent event = nullptr;
    if (context_->may_destroy() && !uses_.is_empty() && !idle_.load(std::memory_order_relaxed)) {
        const ContextScope scope(*context_);
        const RelaxedCapture relaxed;
        bool idle = false;
        FreePlan plan{scope.status()};
        if (plan.status.ok()) plan.status = ask_whether_idle(idle);
        if (plan.status.ok() && !idle) plan = plan_in_stream();
        if (plan.when == FreePlan::When::in_stream) plan.status = plan.mark(*context_, event);
        if (!plan.status.ok() || (plan.when == FreePlan::When::when_idle && !idle)) {
            if (plan.status.reason() != Reason::capturing) deferred_errors::add(plan.status, "free", "buffer");
            deferred_release::release_when_idle(*context_, deferred_release::retain(holder_));
            return;
        }
    }
    // Also when the context has failed: no work uses the memory any more.
    if (released != nullptr) {
        *released = {holder_, event};
    } else {
        deferred_release::release_after(*context_, event, deferred_release::retain(holder_));
    }
}

Status Buffer::charge_to(Account& account) {
    const Lease<Buffer> lease(*this);
    if (!lease) return Reason::closed;
    Charge* const charge = new Charge{Ref<Account>(account), charges_.load(std::memory_order_relaxed)};
    while (
        !charges_.compare_exchange_weak(charge->next, charge, std::memory_order_release, std::memory_order_relaxed)) {
    }
    return {};
}

Status Buffer::order_before(Stream& consumer) {
    const Lease<Buffer> lease(*this);
    if (!lease) return Reason::closed;
    const Submission submission(consumer);
    if (!submission.status().ok()) return submission.status();
    const ContextScope scope(consumer.context());
    if (!scope.status().ok()) return scope.status();
    const std::uint64_t id = consumer.id();
    Status status;
    uses_.visit([&](Use& use, std::uint64_t used_by) {  // of the per-thread stream: of another thread's, perhaps
        if (used_by != id && status.ok()) status = order_after(use, consumer.cu_stream());
    });
    return status;
}

}  // namespace ftcuda::core
