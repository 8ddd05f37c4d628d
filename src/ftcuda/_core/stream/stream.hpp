// A stream: the handle, its leases, and the exclusive section.
//
// Submissions (launch, copy, record, wait) take an inner lease, which an exclusive section of another thread holds
// back; everything else (sync, query, being kept by a buffer) takes an ordinary lease and never waits. States of the
// word: see lifetime.hpp.
#pragma once

#include "../device/context.hpp"
#include "../sync/lifetime.hpp"
#include "../sync/ref.hpp"

#include <utility>
#include <vector>

namespace ftcuda::core {

class Event;
struct Limit;

class Stream final : public Shared {
public:
    static Status create(Context& context, unsigned flags, int priority, Ref<Stream>& stream);
    // A stream that somebody else owns and destroys.
    static Status wrap(abi::CUstream cu_stream, Ref<Stream>& stream);
    // The context's own for CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.
    static Status find_default(Context& context, abi::CUstream token, Stream*& stream);

    Context& context() const noexcept { return *context_; }
    abi::CUstream cu_stream() const noexcept { return cu_stream_; }
    unsigned flags() const noexcept { return flags_; }
    int priority() const noexcept { return priority_; }

    // The default streams are never closed, and never order a free: one of them is another stream in each thread, the
    // other one would end captures of blocking streams.
    bool is_default() const noexcept { return kind_ == Kind::default_token; }
    // Made by us, so that keeping it keeps its handle. Others' handles go when their owners like.
    bool is_owned() const noexcept { return kind_ == Kind::owned; }
    // The driver's id, which it does not use twice; of the calling thread's own stream for the per-thread default.
    std::uint64_t id() const noexcept { return id_ != 0 ? id_ : per_thread_id(); }

    void close() noexcept;  // idempotent; without effect on a default stream
    bool is_closed() const noexcept { return lifetime_.is_closing(); }

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
    Status record(Event& event) noexcept;
    Status wait(Event& event) noexcept;
    Status wait(Stream& other) noexcept;
    // Closed, and all that was ever submitted is done. The caller keeps the handle.
    bool is_finished() const noexcept;
    Status is_capturing(bool& capturing) const noexcept;  // the caller holds a lease

    // The exclusive section: submissions of other threads wait until it ends, and those of other tasks of its thread
    // are refused, as waiting would keep its own task from running. Reentrant. Waits for a section of another thread
    // and for submissions in progress. `holder`: an address of the caller's, by which it ends what it began, in any
    // thread. `task`: what the calling thread runs, by a number that no other task is given; 0 if there is nothing of
    // the kind, or all that the thread runs is meant.
    //
    // A section is abandoned when its thread has ended, or all tasks that are inside, or whatever could have ended it
    // is gone. The next one who submits or begins a section is told, once, and ends it by that.
    Status begin_exclusive(const void* holder, std::uint64_t task) EXCLUDES(section_mutex_);
    // The level that the holder began last. False when there is none any more.
    bool end_exclusive(const void* holder) noexcept EXCLUDES(section_mutex_);
    // The holder is gone, and what it began and did not end is given up.
    void drop_exclusive(const void* holder) noexcept EXCLUDES(section_mutex_);
    // A task has ended, and gives up what it began.
    void give_up(std::uint64_t task) noexcept EXCLUDES(section_mutex_);
    // The thread of the section has ended.
    void abandon_exclusive(std::uint64_t number) noexcept EXCLUDES(section_mutex_);
    bool is_section(std::uint64_t number) const noexcept { return section_.load(std::memory_order_relaxed) == number; }

    // How the core learns of tasks: set once, before the first section. Both may attach to the interpreter, so that
    // they are asked with no lock held, and only where a task is inside of a section.
    struct Tasks {
        std::uint64_t (*running)();             // by the calling thread; 0: none
        bool (*has_ended)(std::uint64_t task);  // or is gone
    };
    static void learn_of_tasks_by(const Tasks& tasks) noexcept;

    // For a foreign stream, before others see it: an object of the caller's, which is let go of (deferred_release.hpp)
    // when the last reference to the stream is gone.
    void keep_owner(void* owner);

private:
    friend class Submission;
    enum class Kind : unsigned char { owned, foreign, default_token };

    Stream(Context& context, abi::CUstream cu_stream, Kind kind) noexcept
        : context_(&context), cu_stream_(cu_stream), kind_(kind) {
        if (!is_default()) retain();  // the handle's, until destroy()
    }
    ~Stream() override = default;

    Status read_attributes() noexcept;
    std::uint64_t per_thread_id() const noexcept;
    void destroy() noexcept;
    Status begin_submission() noexcept;
    void end_submission() noexcept;
    // Whether a section that may be the calling thread's is its task's.
    Status check_task() noexcept EXCLUDES(section_mutex_);
    Status wait_for_section() noexcept EXCLUDES(section_mutex_);
    // Waits until somebody tells of a change, or a task that is inside is found to have ended.
    void wait_for_change() noexcept REQUIRES(section_mutex_);
    void give_up_levels(std::uint64_t task) noexcept REQUIRES(section_mutex_);
    void abandon_section() noexcept REQUIRES(section_mutex_);
    void free_section() noexcept REQUIRES(section_mutex_);
    void wake_section() noexcept EXCLUDES(section_mutex_);

    // Constant after construction.
    Context* const context_;
    const abi::CUstream cu_stream_;
    const Kind kind_;
    unsigned flags_ = 0;
    int priority_ = 0;
    std::uint64_t id_ = 0;  // 0 for the per-thread default stream
    Ref<Shared> owner_;     // null for streams of our own

    // Synchronises itself. On a line of its own: every launch writes it.
    alignas(64) Lifetime lifetime_;

    // The thread that holds the exclusive section, null when there is none or it is abandoned. Written under
    // section_mutex_, but a thread may compare it with itself without the lock: only that thread ever stores its own
    // token. It may find itself there though another thread has just ended its section, and so looks again once it is
    // inside (begin_submission). Relaxed: the word orders.
    std::atomic<const void*> section_owner_{nullptr};
    // The number of the section, 0 when there is none. Stored under section_mutex_. Relaxed: without it a hint.
    std::atomic<std::uint64_t> section_{0};
    Mutex section_mutex_{Rank::exclusive_section};
    Condition section_changed_;
    // What was begun of the section and not ended, in that order. Those of an ended thread stay until somebody is told.
    struct Level {
        const void* holder;
        std::uint64_t task;
    };
    std::vector<Level> section_levels_ GUARDED_BY(section_mutex_);
    std::uint64_t last_section_ GUARDED_BY(section_mutex_) = 0;
    bool section_abandoned_ GUARDED_BY(section_mutex_) = false;
    std::uint64_t section_task_ GUARDED_BY(section_mutex_) = 0;  // which began the first level
    // Whether section_task_ is set, for the section's own thread, which stores it. Relaxed: no
    // other thread's reading matters.
    std::atomic<bool> section_of_task_{false};
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
