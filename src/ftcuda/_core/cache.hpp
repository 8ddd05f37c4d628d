// What a caching resource has in store: memory that was freed and may be given out again without the driver.
//
// Sizes are rounded up to classes, eight for each doubling. Device memory is kept by stream: freed in a stream's order, it may be
// used in the same order again at once, and never in another stream's. Streams are found by the driver's id, which is not used
// twice, and kept as long as something of theirs is in store. What the host reaches is kept in one place, each piece with an
// event: whoever gets it may touch it at once, so it waits until the work of its last user is done.
//
// Under a lock the driver is asked about events only: all else, takers and givers do before or after.
#pragma once

#include "mutex.hpp"
#include "stream.hpp"

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

    // `limit`: bytes in store for one stream.
    Cache(Context& context, std::size_t limit) noexcept : context_(context), limit_(limit) {}
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

    static constexpr bool fits(std::size_t bytes) noexcept { return bytes != 0 && bytes <= largest; }
    static std::size_t rounded(std::size_t bytes) noexcept { return size_of(class_of(bytes)); }

    // A piece for `bytes`: the youngest of `stream`, or, if that is null, the oldest with an event, if that is reached. False:
    // there is none.
    bool take(std::size_t bytes, Stream* stream, Piece& piece);

    // Puts a piece in store. `leaving`: what is in store for too long, or in the order of a closed stream.
    void give(std::size_t bytes, Stream* stream, Piece piece, std::vector<Leaving>& leaving);

    // Count what comes and goes beside the store.
    void count_made(std::size_t bytes);
    void count_freed(std::size_t bytes);

    // Takes pieces out until at most `keep` bytes are in store.
    void empty(std::size_t keep, std::vector<Leaving>& leaving);

    Figures figures();

private:
    static constexpr std::size_t classes = 112;
    static constexpr std::size_t shards = 64;

    struct List {
        std::uint64_t stream_id = 0;
        KeptStream stream;  // null for pieces with events
        std::size_t bytes = 0;
        std::array<std::vector<Piece>, classes> pieces;
    };

    struct alignas(64) Shard {
        Mutex mutex{Rank::cache};
        std::vector<std::unique_ptr<List>> lists GUARDED_BY(mutex);
        Figures figures GUARDED_BY(mutex);  // those of use may be below zero: a piece may come back to another shard
    };

    static std::size_t class_of(std::size_t bytes) noexcept;
    static std::size_t size_of(std::size_t number) noexcept;
    Shard& shard_of(std::uint64_t id) noexcept { return shards_[id % shards]; }
    static List* find(Shard& shard, std::uint64_t id) REQUIRES(shard.mutex);
    // Takes the oldest pieces out, until at most `keep` bytes are in the list.
    static void take_out(Shard& shard, List& list, std::size_t keep, std::vector<Leaving>& leaving) REQUIRES(shard.mutex);
    void empty_closed(std::vector<Leaving>& leaving);

    // Constant after construction.
    Context& context_;
    const std::size_t limit_;

    // Synchronise themselves.
    std::array<Shard, shards> shards_;
};

}  // namespace ftcuda::core
