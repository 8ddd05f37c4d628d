// What a staging pool has: pinned memory, of which pieces are leased, and never more than so much in all. A piece that
// was given back waits for the work that uses it, by an event. Nobody waits for that but who finds no other piece.
#pragma once

#include "../../_driver/clock.hpp"
#include "../device/context.hpp"

#include <list>
#include <thread>

namespace ftcuda::core {

class StagingStore {
public:
    struct Piece {
        abi::CUdeviceptr pointer = 0;
        std::size_t bytes = 0;
        abi::CUevent event = nullptr;  // behind its last use; null: nobody uses it
    };

    struct Figures {
        std::uint64_t in_use_bytes = 0;
        std::uint64_t in_use_count = 0;
        std::uint64_t idle_bytes = 0;
        std::uint64_t idle_count = 0;
        std::uint64_t waiting = 0;  // who stands in line
    };

    // `most`: bytes that it has at once, leased and idle.
    StagingStore(Context& context, std::size_t most) noexcept : context_(context), most_(most) {}
    StagingStore(const StagingStore&) = delete;
    StagingStore& operator=(const StagingStore&) = delete;

    std::size_t most() const noexcept { return most_; }

    // A place in the line of those who wait for a piece: who came first has the first one that is large enough. A
    // thread may have several: while it waits it runs handlers of signals and finalizers, which may want pieces too,
    // and all before the latest stand still meanwhile.
    class Turn {
    public:
        explicit Turn(StagingStore& store);
        ~Turn();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

        bool has_come() const;
        // Seconds.
        double waited() const noexcept;

    private:
        StagingStore& store_;
        const std::thread::id thread_ = std::this_thread::get_id();
        const driver::clock::Moment begin_;
    };

    // A piece of at least so many bytes, of which there are `most` at most; it is touched at once. The context is
    // current in all of these. CUDA_ERROR_NOT_READY: there is none, before somebody gives one back or work is done.
    Status acquire(std::size_t bytes, Piece& piece) EXCLUDES(mutex_);
    void release(Piece piece) EXCLUDES(mutex_);
    // Frees pieces that nobody uses, those first that were given back first, until at most so many bytes are idle.
    Status trim(std::size_t bytes_to_keep) EXCLUDES(mutex_);
    // Frees all of them, and from now on what is given back, as soon as nobody uses it.
    Status close() EXCLUDES(mutex_);

    Figures figures() EXCLUDES(mutex_);

private:
    using Pieces = std::list<Piece>;

    bool take_idle(std::size_t bytes, Piece& piece) REQUIRES(mutex_);
    // Takes out pieces whose work is done, the oldest first, until they have so many bytes; false, and none, if they
    // have not.
    bool evict(std::size_t bytes, Pieces& leaving) REQUIRES(mutex_);
    bool is_done(Piece& piece) noexcept;
    Status free(Pieces& pieces) noexcept;
    void free_when_idle(Piece piece);

    Context& context_;
    const std::size_t most_;

    Mutex mutex_{Rank::staging_store};
    Pieces idle_ GUARDED_BY(mutex_);  // the one that was given back first is in front
    std::size_t made_ GUARDED_BY(mutex_) = 0;
    Figures figures_ GUARDED_BY(mutex_);
    bool is_closed_ GUARDED_BY(mutex_) = false;
    std::list<const Turn*> line_ GUARDED_BY(mutex_);
};

}  // namespace ftcuda::core
