#include "cache.hpp"

#include <algorithm>

namespace ftcuda::core {

namespace {

constexpr std::size_t smallest = 512;  // the driver's own granularity
constexpr std::size_t linear = 8;      // classes of multiples of the smallest, before the doublings
constexpr std::uint64_t everything = ~std::uint64_t{0};
constexpr std::int64_t slack = 2 << 20;
constexpr std::int64_t grain = 1 << 20;

std::size_t log2(std::size_t number) noexcept {
    std::size_t result = 0;
    for (std::size_t step = 32; step != 0; step /= 2) {
        if (number >> step == 0) continue;
        number >>= step;
        result += step;
    }
    return result;
}

// Adds a change to what a shard has not reported yet, and reports that if it is worth it.
bool report(std::int64_t& unreported, std::int64_t change, std::atomic<std::int64_t>& sum) noexcept {
    unreported += change;
    if (-grain < unreported && unreported < grain) return false;
    sum.fetch_add(unreported, std::memory_order_relaxed);
    unreported = 0;
    return true;
}

}  // namespace

// Class 8 k + j, for k > 0, is the j-th eighth above 2^(k + 11).
std::size_t Cache::class_of(std::size_t bytes) noexcept {
    if (bytes <= linear * smallest) return (bytes - 1) / smallest;
    const std::size_t doubling = log2(bytes - 1);
    return 8 * (doubling - 11) + (((bytes - 1) >> (doubling - 3)) - 8);
}

std::size_t Cache::size_of(std::size_t number) noexcept {
    if (number < linear) return (number + 1) * smallest;
    return (number % 8 + 9) << (number / 8 + 8);
}

Cache::List* Cache::find(Shard& shard, std::uint64_t id) {
    for (const std::unique_ptr<List>& list : shard.lists) {
        if (list->stream_id == id) return list.get();
    }
    return nullptr;
}

void Cache::begin_use(Shard& shard, std::size_t size) {
    ++shard.figures.in_use_count;
    shard.figures.in_use_bytes += size;
    if (!report(shard.unreported_use, static_cast<std::int64_t>(size), in_use_)) return;
    const std::int64_t now = in_use_.load(std::memory_order_relaxed);
    std::int64_t most = most_in_use_.load(std::memory_order_relaxed);
    while (most < now && !most_in_use_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
}

void Cache::end_use(Shard& shard, std::size_t size) {
    --shard.figures.in_use_count;
    shard.figures.in_use_bytes -= size;
    report(shard.unreported_use, -static_cast<std::int64_t>(size), in_use_);
}

void Cache::begin_store(Shard& shard, std::size_t size) {
    ++shard.figures.cached_count;
    shard.figures.cached_bytes += size;
    report(shard.unreported_store, static_cast<std::int64_t>(size), in_store_);
}

void Cache::end_store(Shard& shard, std::size_t size) {
    --shard.figures.cached_count;
    shard.figures.cached_bytes -= size;
    report(shard.unreported_store, -static_cast<std::int64_t>(size), in_store_);
}

std::uint64_t Cache::surplus() const noexcept {
    const std::int64_t most = most_in_use_.load(std::memory_order_relaxed);
    const std::int64_t room = most - in_use_.load(std::memory_order_relaxed) + most / 16 + slack;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(in_store_.load(std::memory_order_relaxed) - room, 0));
}

bool Cache::acquire(std::size_t bytes, Stream* stream, Piece& piece) {
    const std::uint64_t id = id_of(stream);
    const std::size_t number = class_of(bytes), size = size_of(number);
    Shard& shard = shard_of(id);
    const Lock lock(shard.mutex);
    List* const list = find(shard, id);
    if (list == nullptr || list->pieces[number].empty()) return false;
    std::vector<Piece>& pieces = list->pieces[number];
    const auto wanted = stream != nullptr ? std::prev(pieces.end()) : pieces.begin();
    if (wanted->event != nullptr && !context_.is_reached(wanted->event)) return false;
    piece = *wanted;
    pieces.erase(wanted);
    end_store(shard, size);
    begin_use(shard, size);
    ++shard.figures.hits;
    return true;
}

void Cache::count_made(std::size_t bytes, std::uint64_t made_in, std::vector<Leaving>& leaving) {
    {
        Shard& shard = shard_of(made_in);
        const Lock lock(shard.mutex);
        begin_use(shard, rounded(bytes));
        ++shard.figures.misses;
    }
    if (const std::uint64_t too_much = surplus(); too_much != 0) evict_all(too_much, leaving);
}

void Cache::count_freed(std::size_t bytes, std::uint64_t made_in) {
    Shard& shard = shard_of(made_in);
    const Lock lock(shard.mutex);
    end_use(shard, rounded(bytes));
}

void Cache::release(std::size_t bytes, std::uint64_t made_in, Stream* stream, Piece piece,
                    std::vector<Leaving>& leaving) {
    const std::uint64_t id = id_of(stream);
    const std::size_t number = class_of(bytes), size = size_of(number);
    Shard& shard = shard_of(id);
    if (&shard != &shard_of(made_in)) count_freed(bytes, made_in);
    bool new_list = false;
    {
        const Lock lock(shard.mutex);
        List* list = find(shard, id);
        if (list == nullptr) {
            auto made = std::make_unique<List>();
            made->stream_id = id;
            if (stream != nullptr) made->stream = KeptStream(*stream);
            list = made.get();
            shard.lists.push_back(std::move(made));
            new_list = true;
        }
        list->pieces[number].push_back(piece);
        begin_store(shard, size);
        if (&shard == &shard_of(made_in)) end_use(shard, size);
        const std::uint64_t in_store = shard.figures.cached_bytes;
        const std::uint64_t too_much = std::max(surplus(), in_store > limit_ ? in_store - limit_ : 0);
        if (too_much != 0) evict(shard, *list, too_much, leaving);
    }
    if (new_list) empty_closed(leaving);  // so that closed streams do not gather
}

std::uint64_t Cache::evict(Shard& shard, List& list, std::uint64_t surplus, std::vector<Leaving>& leaving) {
    std::uint64_t gone = 0;
    for (std::size_t number = classes; number-- != 0 && gone < surplus;) {
        std::vector<Piece>& pieces = list.pieces[number];
        auto piece = pieces.begin();
        for (; piece != pieces.end() && gone < surplus; ++piece) {
            leaving.push_back({*piece, list.stream.get() != nullptr ? KeptStream(*list.stream.get()) : KeptStream()});
            gone += size_of(number);
            end_store(shard, size_of(number));
        }
        pieces.erase(pieces.begin(), piece);
    }
    return gone;
}

void Cache::evict_all(std::uint64_t surplus, std::vector<Leaving>& leaving) {
    for (Shard& shard : shards_) {
        const Lock lock(shard.mutex);
        for (const std::unique_ptr<List>& list : shard.lists)
            surplus -= std::min(surplus, evict(shard, *list, surplus, leaving));
        if (surplus == 0) return;
    }
}

void Cache::empty_closed(std::vector<Leaving>& leaving) {
    std::vector<std::unique_ptr<List>> closed;  // let go of after the locks: that may destroy the stream
    for (Shard& shard : shards_) {
        const Lock lock(shard.mutex);
        for (std::unique_ptr<List>& list : shard.lists) {
            const Stream* const stream = list->stream.get();
            if (stream == nullptr || !stream->is_closed()) continue;
            evict(shard, *list, everything, leaving);
            closed.push_back(std::move(list));
        }
        shard.lists.erase(std::remove(shard.lists.begin(), shard.lists.end(), nullptr), shard.lists.end());
    }
}

void Cache::empty(std::uint64_t keep, std::vector<Leaving>& leaving) {
    std::vector<std::unique_ptr<List>> emptied;  // let go of after the locks
    for (Shard& shard : shards_) {
        const Lock lock(shard.mutex);
        std::uint64_t surplus = shard.figures.cached_bytes - std::min(shard.figures.cached_bytes, keep);
        for (std::unique_ptr<List>& list : shard.lists) {
            surplus -= std::min(surplus, evict(shard, *list, surplus, leaving));
            const auto none = [](const std::vector<Piece>& pieces) { return pieces.empty(); };
            if (std::all_of(list->pieces.begin(), list->pieces.end(), none)) emptied.push_back(std::move(list));
        }
        shard.lists.erase(std::remove(shard.lists.begin(), shard.lists.end(), nullptr), shard.lists.end());
        keep -= shard.figures.cached_bytes;
    }
    most_in_use_.store(in_use_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

Cache::Figures Cache::figures() {
    Figures all;
    for (Shard& shard : shards_) {
        const Lock lock(shard.mutex);
        all.in_use_bytes += shard.figures.in_use_bytes;
        all.in_use_count += shard.figures.in_use_count;
        all.cached_bytes += shard.figures.cached_bytes;
        all.cached_count += shard.figures.cached_count;
        all.hits += shard.figures.hits;
        all.misses += shard.figures.misses;
    }
    return all;
}

}  // namespace ftcuda::core
