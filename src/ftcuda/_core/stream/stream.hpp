// A stream: the handle and its leases.
//
// Submissions (launch, copy, record, wait) take an inner lease, which an exclusive section of another thread holds back
// (exclusive_section.hpp); everything else (sync, query, being kept by a buffer) takes an ordinary lease and never
// waits. States of the word: see lifetime.hpp.
#pragma once

#include "../completion/completion.hpp"
#include "../completion/deferred_release.hpp"
#include "../device/context.hpp"
#include "../sync/lifetime.hpp"
#include "../sync/ref.hpp"
#include "capture_session.hpp"
#include "exclusive_section.hpp"

#include <utility>

namespace ftcuda::core {

class Event;
struct Limit;

class Stream final : public Shared, public Awaited {
public:
    static Status create(Context& context, unsigned flags, int priority, Ref<Stream>& stream);
    // A stream of a session, in which it is captured, or nothing; the session closes it.
    static Status create_captured(Context& context, unsigned flags, int priority, CaptureSession& session,
                                  Ref<Stream>& stream);
    void close_captured() noexcept;
    CaptureSession* session() const noexcept { return session_.get(); }
    // It takes no more work, but lives on until its session ends.
    void end_captured_work() noexcept { over_.store(true, std::memory_order_release); }
    bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }
    // A stream that somebody else owns and destroys.
    static Status wrap(abi::CUstream cu_stream, Ref<Stream>& stream);
    // The context's own for CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.
    static Status find_default(Context& context, abi::CUstream token, Stream*& stream);

    Context& context() const noexcept { return *context_; }
    abi::CUstream cu_stream() const noexcept { return cu_stream_; }
    // For others, who may capture it.
    abi::CUstream share_cu_stream() noexcept {
        note_capture();
        return cu_stream_;
    }
    // False only if nobody can have begun a capture that the stream is part of: its handle is ours alone, and it never
    // waited for a stream or an event of which that is not known. Relaxed: what a thread submits sees what was
    // submitted before it, in whatever thread.
    bool may_be_captured() const noexcept { return may_be_captured_.load(std::memory_order_relaxed); }
    unsigned flags() const noexcept { return flags_; }
    int priority() const noexcept { return priority_; }

    // The default streams are never closed, and never order a free: one of them is another stream in each thread, the
    // other one would end captures of blocking streams.
    bool is_default() const noexcept { return kind_ == Kind::default_token; }
    // Made by us, so that keeping it keeps its handle. Others' handles go when their owners like.
    bool is_owned() const noexcept { return kind_ == Kind::owned; }
    // The driver's id, which it does not use twice; of the calling thread's own stream for the per-thread default.
    std::uint64_t id() const noexcept { return id_ != 0 ? id_ : per_thread_id(); }

    void close() noexcept;  // idempotent; without effect on a default stream, or one of a session
    bool is_closed() const noexcept { return lifetime_.is_closing() || is_over(); }

    bool enter() noexcept { return lifetime_.enter() == 0; }
    void leave() noexcept {
        if (Lifetime::last(lifetime_.leave())) destroy();
    }

    // Keeps the handle, and with it this object, beyond the caller's scope; the caller holds a lease or a submission.
    void keep() noexcept { lifetime_.enter_again(); }
    void let_go() noexcept { leave(); }

    // Until all is done that was submitted so far, or to the limit.
    Status synchronize(const Limit& limit) noexcept;
    Status query(bool& done) noexcept;
    // Behind all that was submitted so far. Like a question, it waits for no section.
    Status arm(Completion& completion) override;
    Status record(Event& event) noexcept;
    Status wait(Event& event) noexcept;
    Status wait(Stream& other) noexcept;
    // For an event of the context's (Context::acquire_event), which gets it back; the caller's still if that fails.
    Status wait(Context& context, abi::CUevent event) noexcept;
    // Takes back an event of the context's that was recorded last in this stream, and that nobody needs any more,
    // reached or not. It does not serve again if a capture has it. The caller keeps the handle.
    void release_event(abi::CUevent event) const;

    // What the core does of its own accord in a stream that somebody keeps, beside others who may have its handle, and
    // begin a capture of it at any moment. What was asked of the stream, or waits in it, would end their capture, so
    // that an event is recorded, and then asked whether a capture has it. `capturing` if that is so.
    //
    // By an event: `event`, or one of the context's if it is null, which it stays, or becomes, if a capture has it. A
    // capture that is over by then is not seen: who asks for the event or waits for it hears of it (is_of_capture).
    Status mark(abi::CUevent& event) noexcept;
    // The same, by an event that no capture had.
    Status mark_surely(abi::CUevent& event) noexcept;
    Status wait_until_idle() noexcept;
    // Whether all is done that was submitted. Of a stream that others may capture nobody asks it: false.
    Status is_idle(bool& idle) noexcept;
    // Retains until all is done that was submitted so far. By who has a submission, or keeps the stream.
    void retain_until_done(deferred_release::Retention retention) noexcept;
    // How to mark what is submitted, once others capture the stream no more. Null if its handle may be gone by then.
    deferred_release::Mark mark_later() noexcept;

    // While it lives, others who ask for the handle of a stream that was nobody else's so far wait: whether it is so.
    class Alone {
    public:
        explicit Alone(Stream& stream) noexcept;
        ~Alone() {
            if (is_alone_) stream_.alone_.fetch_sub(1, std::memory_order_release);
        }
        Alone(const Alone&) = delete;
        Alone& operator=(const Alone&) = delete;
        explicit operator bool() const noexcept { return is_alone_; }

    private:
        Stream& stream_;
        bool is_alone_;
    };

    // Closed, and all that was ever submitted is done. The caller keeps the handle.
    bool is_finished() noexcept;
    // The caller holds a lease, and the context is current, as for the next one.
    Status is_capturing(bool& capturing) const noexcept;
    // The driver's number of the capture that goes on; 0: none, or nobody knows. Within a submission.
    std::uint64_t find_capture() const noexcept;
    // Whether the handle is valid until the stream is closed, and nobody keeps it any more.
    bool keeps_handle() const noexcept { return is_owned() || owner_; }
    // The graph that what is submitted now becomes part of; null if none.
    Status captured_graph(bool& capturing, abi::CUgraph& graph) const noexcept;

    ExclusiveSection& section() noexcept { return section_; }

    // For a foreign stream, before others see it: an object of the caller's, which is let go of (deferred_release.hpp)
    // when the last reference to the stream is gone.
    void keep_owner(Ref<deferred_release::ForeignReference> owner) noexcept { owner_ = std::move(owner); }

private:
    friend class Submission;
    enum class Kind : unsigned char { owned, foreign, default_token };

    Stream(Context& context, abi::CUstream cu_stream, Kind kind) noexcept
        : context_(&context), cu_stream_(cu_stream), kind_(kind), may_be_captured_(kind != Kind::owned) {
        if (!is_default()) retain();  // the handle's, until destroy()
    }
    ~Stream() override = default;

    Status read_attributes() noexcept;
    std::uint64_t per_thread_id() const noexcept;
    void destroy() noexcept;
    // Afterwards nobody is Alone.
    void note_capture() noexcept;
    Status begin_submission() noexcept;
    void end_submission() noexcept;
    // What submissions to most streams never come to, apart from what they do.
    [[gnu::noinline]] Status begin_captured() noexcept;
    [[gnu::noinline]] Status wait_captured(Event& event) noexcept;
    [[gnu::noinline]] void end_slowly(Lifetime::Word before) noexcept;
    void end_captured(Lifetime::Word before) noexcept;

    // Constant after construction.
    Context* const context_;
    const abi::CUstream cu_stream_;
    const Kind kind_;
    unsigned flags_ = 0;
    int priority_ = 0;
    std::uint64_t id_ = 0;                           // 0 for the per-thread default stream
    Ref<deferred_release::ForeignReference> owner_;  // null for streams of our own
    Ref<CaptureSession> session_;                    // null unless a session made it

    // Synchronises itself; set once, if ever.
    std::atomic<bool> may_be_captured_;

    // How many are Alone. Sequentially consistent, as the note above is: either that is seen here, or this there.
    std::atomic<unsigned> alone_{0};

    // Of a session's stream. Acquire and release: it guards no data.
    std::atomic<bool> over_{false};

    // Synchronises itself. On a line of its own: every launch writes it.
    alignas(64) Lifetime lifetime_;

    ExclusiveSection section_{*this, lifetime_};
};

// A stream that is kept beyond the scope of whoever uses it.
class KeptStream {
public:
    KeptStream() noexcept = default;
    explicit KeptStream(Stream& stream) noexcept : stream_(&stream) { stream.keep(); }  // the caller holds it somehow
    KeptStream(KeptStream&& other) noexcept : stream_(other.stream_) { other.stream_ = nullptr; }
    KeptStream& operator=(KeptStream&& other) noexcept {
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~KeptStream() {
        if (stream_ != nullptr) stream_->let_go();
    }

    Stream* get() const noexcept { return stream_; }

private:
    Stream* stream_ = nullptr;
};

// One submission to a stream, from before the driver call until after it.
class Submission {
public:
    explicit Submission(Stream& stream) noexcept : stream_(stream), status_(stream.begin_submission()) {}
    ~Submission() {
        if (status_.ok()) stream_.end_submission();
    }
    Submission(const Submission&) = delete;
    Submission& operator=(const Submission&) = delete;

    Status status() const noexcept { return status_; }

private:
    Stream& stream_;
    const Status status_;
};

}  // namespace ftcuda::core
