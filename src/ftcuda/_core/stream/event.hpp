// An event: a point in a stream's work that can be waited for, asked about and timed.
#pragma once

#include "../completion/completion.hpp"
#include "../device/context.hpp"
#include "../sync/lifetime.hpp"
#include "../sync/ref.hpp"
#include "stream.hpp"

namespace ftcuda::core {

struct Limit;

class Event final : public Shared, public Awaited {
public:
    // `session`: whose streams record it, and nobody else; null for an ordinary one.
    static Status create(Context& context, unsigned flags, CaptureSession* session, Ref<Event>& event);

    Context& context() const noexcept { return *context_; }
    abi::CUevent cu_event() const noexcept { return cu_event_; }
    // For others, who may record with it and tell nobody: from here on the driver is asked every time.
    abi::CUevent share_cu_event() noexcept {
        records_.fetch_or(shared, std::memory_order_relaxed);
        return cu_event_;
    }
    unsigned flags() const noexcept { return flags_; }

    // Whether a stream that waits for it may become part of a capture: a stream that may be captured recorded it, or
    // others may. Relaxed: what a thread submits sees what was submitted before it, in whatever thread.
    bool may_be_captured() const noexcept {
        return (records_.load(std::memory_order_relaxed) & (shared | captured)) != 0;
    }
    // Such an event is not asked: it is part of a graph, and the question would end its capture.
    const CaptureSession* session() const noexcept { return session_.get(); }

    void close() noexcept {
        if (lifetime_.close()) destroy();
    }
    bool is_closed() const noexcept { return lifetime_.is_closing(); }

    bool enter() noexcept { return lifetime_.enter() == 0; }
    void leave() noexcept {
        if (Lifetime::last(lifetime_.leave())) destroy();
    }

    // Until the latest record is reached, or to the limit.
    Status synchronize(const Limit& limit) noexcept;
    Status query(bool& done) noexcept;
    // By the latest record, also if it is recorded again meanwhile.
    Status arm(Completion& completion) override;
    // Whether a query found the latest record done, without the driver. False also for an event that cannot be used any
    // more.
    bool is_known_done() const noexcept {
        return known_done_.load(std::memory_order_acquire) == records_.load(std::memory_order_acquire) &&
               !is_closed() && context_->usable().ok();
    }
    // In a stream of the event's context and session, within a submission; the caller has a lease on the event.
    // `captured_event` if a capture has the latest record, or another one of that stream goes on, and the stream is no
    // part of it: the driver would crash.
    Status record(Stream& stream) noexcept;

    // Milliseconds from `start` to `end`, both recorded and reached.
    static Status elapsed(Event& start, Event& end, float& milliseconds) noexcept;

private:
    Event(Context& context, abi::CUevent cu_event, unsigned flags, Ref<CaptureSession> session) noexcept
        : context_(&context), cu_event_(cu_event), flags_(flags), session_(std::move(session)) {}
    ~Event() override = default;

    void destroy() noexcept;
    Status record_beside_captures(Stream& stream) noexcept EXCLUDES(mutex_);
    bool is_of_another_capture(const Stream& stream) noexcept REQUIRES(mutex_);

    // Of records_: how many records have ended, how many are in progress, whether others have the handle, whether a
    // stream that may be captured recorded it, and whether nobody records without the lock any more since then.
    using Records = std::uint64_t;
    static constexpr Records in_progress = 0xffff;
    static constexpr Records ended = 0x1'0000;
    static constexpr Records shared = Records{1} << 63;
    static constexpr Records captured = Records{1} << 62;
    static constexpr Records locked = Records{1} << 61;

    // Constant after construction.
    Context* const context_;
    const abi::CUevent cu_event_;
    const unsigned flags_;
    const Ref<CaptureSession> session_;

    // Synchronise themselves. A query that begins with no record in progress, and finds the event done, remembers the
    // records it began with: any later record changes them before the driver hears of it. Acquire and release: whoever
    // finds the event known to be done sees what the one who asked the driver saw.
    std::atomic<Records> records_{0};
    std::atomic<Records> known_done_{in_progress};  // equal to no records_ without a record in progress

    // The capture that has the latest record, and the stream in which it was recorded, if its handle is valid until it
    // is closed.
    Mutex mutex_{Rank::event};
    Ref<Stream> captured_in_ GUARDED_BY(mutex_);
    std::uint64_t capture_ GUARDED_BY(mutex_) = 0;

    // Synchronises itself.
    Lifetime lifetime_;
};

}  // namespace ftcuda::core
