// A buffer: a range of memory, the stream it was allocated in, and the streams that use it.
#pragma once

#include "account.hpp"
#include "memory.hpp"
#include "spread_lifetime.hpp"
#include "uses.hpp"

namespace ftcuda::core {

class Buffer final : public Shared {
public:
    // From `resource`, in the order of `stream`, which becomes the buffer's home. A null stream is allowed where the
    // allocation is not stream-ordered. Zero bytes are no allocation: the pointer is 0.
    static Status allocate(MemoryResource& resource, std::size_t bytes, Stream* stream, Ref<Buffer>& buffer);

    // Memory that somebody else owns. `held`: closing waits for the submitted work, because the owner lets go then.
    // `lender`, if not null, is kept after closing until the submitted work is done (kept.hpp): it frees the memory.
    static Ref<Buffer> wrap(Context& context, abi::CUdeviceptr pointer, std::size_t bytes, bool held, void* lender);

    // Whether work on `device` may touch it: its own device's, and everybody's where the memory is the host's or managed.
    bool is_reachable_from(const Context& context) const noexcept { return any_device_ || context_ == &context; }

    abi::CUdeviceptr pointer() const noexcept { return allocation_.pointer; }
    std::size_t size() const noexcept { return bytes_; }
    Context& context() const noexcept { return *context_; }

    // Frees after all work that was submitted with the buffer: in the order of `stream` if given, else of its home stream.
    // Idempotent. `in_use` while a view is exported.
    Status close(Stream* stream);
    bool is_closed() const noexcept { return lifetime_.is_closing(); }

    bool enter() noexcept {
        bool is_last = false;
        const bool inside = lifetime_.enter(is_last);
        if (is_last) destroy();
        return inside;
    }
    void leave() noexcept {
        if (lifetime_.leave()) destroy();
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

    // Views of host-accessible memory, which forbid close().
    bool enter_view() noexcept { return lifetime_.enter_inner(); }
    void leave_view() noexcept { lifetime_.leave_inner(); }

    // Counts the buffer in `account`, which has been charged with it, until it is freed.
    Status charge_to(Account& account);

    // Makes `consumer` wait for all work that was submitted with the buffer so far.
    Status order_before(Stream& consumer);

    // True for the first caller: who tells others that the buffer was closed.
    bool announce_close() noexcept { return !announced_.exchange(true, std::memory_order_relaxed); }

    // `width` bytes (1, 2 or 4) of `value`, repeated; the size is a multiple of it.
    Status fill(std::uint32_t value, unsigned width, Stream& stream) noexcept;

private:
    Buffer(Context& context, MemoryResource::Allocation allocation, std::size_t bytes) noexcept
        : context_(&context), allocation_(allocation), bytes_(bytes) {}
    ~Buffer() override = default;

    // With a lease on `resource`.
    static Status allocate_inside(MemoryResource& resource, std::size_t bytes, Stream* stream, Ref<Buffer>& buffer);
    // The free waits for what was submitted to `stream` so far, and is in its order unless another one was named before.
    Status free_after(Stream& stream);
    Status add_use(Stream& stream) noexcept;
    void mark_use(Stream& stream) noexcept;
    Status record_use(Stream& stream, Use& use) noexcept;
    // The two ways to wait for the uses. `later`: it cannot be done now, but when nothing runs.
    // `home`: whose stream that is, null for nobody's.
    Status order_free(Stream*& home, abi::CUstream& stream, bool& later);
    Status wait_for_uses(bool& later) noexcept;
    void destroy() noexcept;
    void give_back() noexcept;

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
    bool held_ = false;
    void* lender_ = nullptr;

    // Constant until the one who destroys lets go of it. Null for memory that somebody else owns.
    Ref<MemoryResource> resource_;

    // Synchronise themselves. The word is on a line of its own: every launch with the buffer writes it, unless it is spread.
    [[maybe_unused]] LineBetween before_lifetime_;
    SpreadLifetime lifetime_;
    [[maybe_unused]] LineBetween after_lifetime_;
    Uses uses_;
    // The id of the stream of the first close(stream). Relaxed: read only by the one who destroys.
    std::atomic<std::uint64_t> free_in_{0};
    // A use could not be marked: only when nothing runs is it known to be over. Relaxed: as above.
    std::atomic<bool> unordered_{false};
    // Relaxed: it guards no data.
    std::atomic<bool> announced_{false};
    // A list, pushed with release while a lease is held; read with acquire by the one who destroys.
    std::atomic<Charge*> charges_{nullptr};
};

// A buffer's use by a submission, for one scope; nothing for memory that the caller keeps alive, whose buffer is null.
class BufferUse {
public:
    BufferUse(Buffer* buffer, Stream& stream) noexcept : buffer_(buffer), stream_(stream) {
        if (buffer_ != nullptr) status_ = buffer_->begin_use(stream);
    }
    ~BufferUse() {
        if (buffer_ != nullptr && status_.ok()) buffer_->end_use(stream_);
    }
    BufferUse(const BufferUse&) = delete;
    BufferUse& operator=(const BufferUse&) = delete;

    Status status() const noexcept { return status_; }

private:
    Buffer* const buffer_;
    Stream& stream_;
    Status status_;
};

}  // namespace ftcuda::core
