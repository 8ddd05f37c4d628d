// A buffer: a range of memory, the stream it was allocated in, and the streams that use it.
#pragma once

#include "../sync/cache_line.hpp"
#include "../sync/sharded_lifetime.hpp"
#include "account.hpp"
#include "resource.hpp"
#include "stream_uses.hpp"
#include "windows.hpp"

namespace ftcuda::core {

struct Limit;

class Buffer final : public Shared, private windows::Waiter {
public:
    // From `resource`, in the order of `stream`, which becomes the buffer's home. A null stream is allowed where the
    // allocation is not stream-ordered. Zero bytes are no allocation: the pointer is 0.
    static Status allocate(MemoryResource& resource, std::size_t bytes, Stream* stream, Ref<Buffer>& buffer);

    // The same from a staging pool, which waits for memory: `timed_out`, `interrupted`, or `closed` if the pool is, may
    // come of it. No more bytes than the pool has; the limit counts from the begin of the turn.
    static Status lease(MemoryResource& resource, std::size_t bytes, const StagingStore::Turn& turn, Limit limit,
                        Ref<Buffer>& buffer);

    // The same after an allocation found no memory: empties all caches of the context, lets the frees happen, gives the
    // pool's unused memory and that of graphs back, and tries again. Other threads may get that memory first, so all of
    // this is repeated while there is something to win: the caches had memory, another thread empties them too, or the
    // device has room.
    static Status allocate_where_memory_is_short(MemoryResource& resource, std::size_t bytes, Stream* stream,
                                                 Ref<Buffer>& buffer);

    // Memory that somebody else owns. `holder`, if not null, is the caller's object that keeps or frees the memory: it
    // is handed out (ReleasedHolder) when the buffer was closed, nobody is inside, and no window stands in it
    // (windows.hpp). The buffer is a window itself, until close_window().
    static Ref<Buffer> wrap(Context& context, abi::CUdeviceptr pointer, std::size_t bytes, void* holder);
    // Constant. Whoever is inside, or knows that nobody has closed the buffer, may use it.
    void* holder() const noexcept { return holder_; }
    // What held the memory was let go of, or is about to be: those whose memory it is in may go. Idempotent. By whoever
    // has the holder.
    void close_window() noexcept;
    // Before others know the buffer: its holder calls credit(), once it has freed the memory.
    void leave_credit_to_holder() noexcept { holder_credits_ = true; }

    // Whether work on `device` may touch it: its own device's, and everybody's where the memory is the host's or
    // managed.
    bool is_reachable_from(const Context& context) const noexcept { return any_device_ || context_ == &context; }

    abi::CUdeviceptr pointer() const noexcept { return allocation_.pointer; }
    std::size_t size() const noexcept { return bytes_; }
    Context& context() const noexcept { return *context_; }

    // The holder of a buffer that is gone, and the event behind the work that used the memory: null where there is none
    // left. Whoever gets it lets the holder go when the event is reached, and gives the event back to the context.
    struct ReleasedHolder {
        void* holder = nullptr;
        abi::CUevent event = nullptr;
    };

    // Frees after all work that was submitted with the buffer: in the order of `stream` if given, else of its home
    // stream. Idempotent. With views still exported the memory goes with the last of them. `released` is filled if this
    // call was the last one inside; if a launch or a copy was, the holder is kept (deferred_release.hpp). `idle`: the
    // caller knows that the work is done. `collected`: the garbage collector ends it, perhaps with windows in it.
    Status close(Stream* stream, bool idle, bool collected, ReleasedHolder& released);
    // The calling thread's collection is over: who waits for windows that were no garbage waits no more.
    static void end_collection() noexcept;
    bool is_closed() const noexcept { return lifetime_.is_closing(); }

    // Constant: whether a graph allocates it.
    bool is_of_graph() const noexcept { return static_cast<bool>(captured_memory_); }
    // Of a graph's memory: closes it, and the graph frees it there, if the builder that `stream` is of builds that
    // graph; if null, the one that it was allocated in. Else nothing happens, or it is an error: the builder builds
    // another one.
    Status close_in_graph(Stream* stream);
    // The same for what the graph that `stream` is captured to has allocated at an address.
    static Status close_in_graph_at(Stream& stream, abi::CUdeviceptr pointer);

    bool enter() noexcept {
        const Entrance entrance = lifetime_.enter();
        if (entrance == Entrance::inside) return true;
        if (entrance == Entrance::last) destroy(nullptr);
        return false;
    }
    void leave() noexcept {
        if (lifetime_.leave()) destroy(nullptr);
    }
    // For callers that can let go of a holder at once.
    void leave(ReleasedHolder& released) noexcept {
        if (lifetime_.leave()) destroy(&released);
    }

    // Around a submission to `stream` that touches the buffer; the caller holds the submission.
    Status begin_use(Stream& stream) noexcept {
        if (!enter()) return Reason::closed;
        if (stream.id() != home_id_) return add_use(stream);
        return {};
    }
    void end_use(Stream& stream) noexcept {
        if (stream.is_default()) mark_use(stream);
        leave();
    }

    // Counts the buffer in `account`, which has been charged with it, until credit().
    Status charge_to(Account& account);
    // Tells the accounts that the memory is free.
    void credit() noexcept { credit(charges_.exchange(nullptr, std::memory_order_acquire)); }

    // Makes `consumer` wait for all work that was submitted with the buffer so far.
    Status order_before(Stream& consumer);

    // True for the first caller: who tells others that the buffer was closed.
    bool announce_close() noexcept { return !announced_.exchange(true, std::memory_order_relaxed); }

private:
    Buffer(Context& context, MemoryResource::Allocation allocation, std::size_t bytes) noexcept
        : context_(&context), allocation_(allocation), bytes_(bytes) {}
    ~Buffer() override = default;

    // What a graph keeps of it.
    class GraphLease;
    static Status check_stream(const MemoryResource& resource, const Stream* stream) noexcept;
    // In a submission to a graph builder's stream.
    void become_graphs(Stream& stream);
    // In such a submission, and a lease.
    Status capture_free(Stream& stream);

    // With a lease on `resource`.
    static Status allocate_inside(MemoryResource& resource, std::size_t bytes, Stream* stream, Ref<Buffer>& buffer);
    // The free waits for what was submitted to `stream` so far, and is in its order unless another one was named
    // before.
    Status free_after(Stream& stream);
    Status add_use(Stream& stream) noexcept;
    void mark_use(Stream& stream) noexcept;

    // How memory is given back once nobody is inside. Who makes the plan has waited for the uses, or made `stream` wait
    // for them.
    struct FreePlan {
        enum class When : unsigned char {
            now,
            in_stream,  // in the order of `stream`
            when_idle,  // at the next synchronize() of the context: the uses cannot be waited for, or that failed
        };

        Status status;  // why it failed, where it did
        When when = When::when_idle;
        abi::CUstream stream = nullptr;
        Stream* home = nullptr;  // whose handle `stream` is; null for the context's own stream

        // An event behind what was planned in the stream.
        Status mark(Context& context, abi::CUevent& event) const noexcept;
    };
    // With the context current, as for carry_out().
    FreePlan plan_in_stream() noexcept;
    // Makes a stream wait for all uses but `target`.
    void order(abi::CUstream stream, const Use* target, Status& status) noexcept;
    // The same in the stream of `target`; nothing, and false, if others may capture it.
    bool order_in(Stream& stream, const Use* target, FreePlan& plan) noexcept;
    FreePlan plan_now() noexcept;
    Status carry_out(const FreePlan& plan) noexcept;
    // In a function that a stream waits for: true, and the buffer is closed later.
    bool put_off_close(Stream* stream);
    // Nobody is inside any more.
    void destroy(ReleasedHolder* released) noexcept;
    bool waits_for_window() noexcept;
    static void go_on(windows::Waiter* waiter, bool only_closed) noexcept;
    void free(ReleasedHolder* released) noexcept;
    // While others capture a stream in which it was used nobody can wait for that: true, and it is freed after that.
    bool put_off_for_capture();
    void hand_out(ReleasedHolder* released) noexcept;
    Status ask_whether_idle(bool& idle) noexcept;

    struct Charge {
        Ref<Account> account;
        Charge* next;
    };
    void credit(Charge* latest) noexcept;

    // Constant after construction.
    Context* const context_;
    const MemoryResource::Allocation allocation_;
    const std::size_t bytes_;
    std::uint64_t home_id_ = 0;  // 0: no home
    bool any_device_ = false;
    void* holder_ = nullptr;
    bool holder_credits_ = false;
    Ref<CapturedMemory> captured_memory_;  // whose it is; null unless a graph allocates it
    Ref<Stream> allocated_in_;             // the builder's stream then
    std::uint64_t window_ = 0;             // its number; 0: it is none
    std::uint64_t made_after_ = 0;         // windows of greater numbers may stand in it

    // For the one who destroys, or who goes on with that. Windows of greater numbers do not stand in it; 0 at first.
    std::uint64_t closed_after_ = 0;
    bool only_closed_ = false;  // windows that are closed, but not done with, stand in it

    // Constant until the one who destroys lets go of it. Null for memory that somebody else owns.
    Ref<MemoryResource> resource_;

    // Synchronise themselves. The word is on a line of its own: every launch with the buffer writes it, unless it is
    // spread.
    [[maybe_unused]] LineBetween before_lifetime_;
    ShardedLifetime lifetime_;
    [[maybe_unused]] LineBetween after_lifetime_;
    StreamUses uses_;
    // The id of the stream of the first close(stream). Relaxed: read only by the one who destroys.
    std::atomic<std::uint64_t> free_in_{0};
    // A use could not be marked: only when nothing runs is it known to be over. Relaxed: as above.
    std::atomic<bool> unordered_{false};
    // The graph that allocates it frees it too. Written under the session's lock. Relaxed: as above.
    std::atomic<bool> freed_in_graph_{false};
    // Nothing that was submitted still runs. Relaxed: as above.
    std::atomic<bool> idle_{false};
    std::atomic<bool> frees_in_graph_{false};  // whose close in a host function is to add the free to its graph
    // The collector ends it. Relaxed: read only by the one who destroys.
    std::atomic<bool> collected_{false};
    // Relaxed: it guards no data.
    std::atomic<bool> announced_{false};
    // A list, pushed with release while a lease is held; taken with acquire when the memory is free.
    std::atomic<Charge*> charges_{nullptr};
};

}  // namespace ftcuda::core
