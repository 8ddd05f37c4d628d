// What a caching resource has in store: memory that was freed and may be given out again without the driver.
//
// Sizes are rounded up to classes, eight for each doubling. Device memory is kept by stream: freed in a stream's order,
// it may be used in the same order again at once, and never in another stream's. Streams are found by the driver's id,
// which is not used twice, and kept as long as something of theirs is in store. What the host reaches is kept in one
// place, each piece with an event: whoever gets it may touch it at once, so it waits until the work of its last user is
// done. Plain device memory whose last use was in another stream than its own is kept there too, if that must not wait.
//
// What is in use and in store together stays below the most that was in use, a sixteenth and 2 MiB. So steps that
// repeat find all they need, and what nobody will use goes back: of the stream that frees, and, where another one needs
// new memory, of all.
//
// Under a lock the driver is asked about events only: all else, who acquires or releases does before or after.
#pragma once

#include "../stream/stream.hpp"
#include "../sync/mutex.hpp"

#include <array>
#include <memory>
#include <vector>

namespace ftcuda::core {

class Cache {
public:
    // A range of memory. `event` is behind its last use, null where a stream's order or nothing is.
    struct Piece {
        abi::CUdeviceptr pointer = 0;
        abi::CUevent event = nullptr;
    };

    // Pieces that leave the store: the stream in whose order each may be freed, null for pieces with events.
    struct Leaving {
        Piece piece;
        KeptStream stream;
    };

    struct Figures {
        std::uint64_t in_use_bytes = 0;
        std::uint64_t in_use_count = 0;
        std::uint64_t cached_bytes = 0;
        std::uint64_t cached_count = 0;
        std::uint64_t hits = 0;
        std::uint64_t misses = 0;
    };

    static constexpr std::size_t largest = std::size_t{32} << 20;  // what is larger is worth a call of the driver

    // `limit`: bytes in store for one stream, at most.
    Cache(Context& context, std::size_t limit) noexcept : context_(context), limit_(limit) {}
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

    static constexpr bool fits(std::size_t bytes) noexcept { return bytes != 0 && bytes <= largest; }
    static std::size_t rounded(std::size_t bytes) noexcept { return size_of(class_of(bytes)); }

    // A piece for `bytes`: the youngest of `stream`, or, if that is null, the oldest with an event, if that is reached.
    // False: there is none.
    bool acquire(std::size_t bytes, Stream* stream, Piece& piece);
    // A piece that did not come from the store is in use.
    void count_made(std::size_t bytes, std::uint64_t made_in, std::vector<Leaving>& leaving);

    // Puts a piece in store. `made_in`: the id of the stream it was allocated in. `leaving`: what is too much, or in
    // the order of a closed stream.
    void release(std::size_t bytes, std::uint64_t made_in, Stream* stream, Piece piece, std::vector<Leaving>& leaving);
    // A piece is no longer in use, and does not go to the store.
    void count_freed(std::size_t bytes, std::uint64_t made_in);

    static std::uint64_t id_of(const Stream* stream) noexcept { return stream != nullptr ? stream->id() : 0; }

    // Evicts pieces until at most `keep` bytes are in store.
    void empty(std::uint64_t keep, std::vector<Leaving>& leaving);

    Figures figures();

private:
    static constexpr std::size_t classes = 112;
    static constexpr std::size_t shards = 64;

    struct List {
        std::uint64_t stream_id = 0;
        KeptStream stream;  // null for pieces with events
        std::array<std::vector<Piece>, classes> pieces;
    };

    struct alignas(64) Shard {
        Mutex mutex{Rank::cache};
        std::vector<std::unique_ptr<List>> lists GUARDED_BY(mutex);
        Figures figures GUARDED_BY(mutex);
        std::int64_t unreported_use GUARDED_BY(mutex) = 0;
        std::int64_t unreported_store GUARDED_BY(mutex) = 0;
    };

    static std::size_t class_of(std::size_t bytes) noexcept;
    static std::size_t size_of(std::size_t number) noexcept;
    Shard& shard_of(std::uint64_t id) noexcept { return shards_[id % shards]; }
    static List* find(Shard& shard, std::uint64_t id) REQUIRES(shard.mutex);
    void begin_use(Shard& shard, std::size_t size) REQUIRES(shard.mutex);
    void end_use(Shard& shard, std::size_t size) REQUIRES(shard.mutex);
    void begin_store(Shard& shard, std::size_t size) REQUIRES(shard.mutex);
    void end_store(Shard& shard, std::size_t size) REQUIRES(shard.mutex);
    // How many bytes in store are too many.
    std::uint64_t surplus() const noexcept;
    // Evicts pieces of a list, the largest and of those the oldest first, until `surplus` bytes are gone or nothing is
    // left. Returns how many bytes that were.
    std::uint64_t evict(Shard& shard, List& list, std::uint64_t surplus, std::vector<Leaving>& leaving)
        REQUIRES(shard.mutex);
    void evict_all(std::uint64_t surplus, std::vector<Leaving>& leaving);
    void empty_closed(std::vector<Leaving>& leaving);

    // Constant after construction.
    Context& context_;
    const std::size_t limit_;

    // Synchronise themselves. The sums are of what the shards have reported, each when it has changed by a mebibyte, so
    // that threads seldom write the same line. Relaxed: they guard no data.
    std::array<Shard, shards> shards_;
    alignas(64) std::atomic<std::int64_t> in_use_{0};
    std::atomic<std::int64_t> most_in_use_{0};  // since the cache was last emptied
    std::atomic<std::int64_t> in_store_{0};
};

}  // namespace ftcuda::core
