#include "cache.hpp"

#include <algorithm>

namespace ftcuda::core {

namespace {

constexpr std::size_t smallest = 512;  // the driver's own granularity
constexpr std::size_t linear = 8;      // classes of multiples of the smallest, before the doublings

std::size_t log2(std::size_t number) noexcept {
    std::size_t result = 0;
    for (std::size_t step = 32; step != 0; step /= 2) {
        if (number >> step == 0) continue;
        number >>= step;
        result += step;
    }
    return result;
}

std::uint64_t id_of(const Stream* stream) noexcept {
    return stream != nullptr ? stream->id() : 0;
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

bool Cache::take(std::size_t bytes, Stream* stream, Piece& piece) {
    const std::uint64_t id = id_of(stream);
    const std::size_t number = class_of(bytes);
    Shard& shard = shard_of(id);
    const Lock lock(shard.mutex);
    List* const list = find(shard, id);
    if (list == nullptr || list->pieces[number].empty()) return false;
    std::vector<Piece>& pieces = list->pieces[number];
    const auto wanted = stream != nullptr ? std::prev(pieces.end()) : pieces.begin();
    if (wanted->event != nullptr && !context_.is_reached(wanted->event)) return false;
    piece = *wanted;
    pieces.erase(wanted);
    list->bytes -= size_of(number);
    --shard.figures.cached_count;
    shard.figures.cached_bytes -= size_of(number);
    ++shard.figures.in_use_count;
    shard.figures.in_use_bytes += size_of(number);
    ++shard.figures.hits;
    return true;
}

void Cache::give(std::size_t bytes, Stream* stream, Piece piece, std::vector<Leaving>& leaving) {
    const std::uint64_t id = id_of(stream);
    const std::size_t number = class_of(bytes);
    Shard& shard = shard_of(id);
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
        list->bytes += size_of(number);
        ++shard.figures.cached_count;
        --shard.figures.in_use_count;
        shard.figures.cached_bytes += size_of(number);
        shard.figures.in_use_bytes -= size_of(number);
        if (list->bytes > limit_) take_out(shard, *list, limit_ / 2, leaving);
    }
    if (new_list) empty_closed(leaving);  // so that closed streams do not gather
}

void Cache::take_out(Shard& shard, List& list, std::size_t keep, std::vector<Leaving>& leaving) {
    for (std::size_t number = classes; number-- != 0 && list.bytes > keep;) {
        std::vector<Piece>& pieces = list.pieces[number];
        auto piece = pieces.begin();
        for (; piece != pieces.end() && list.bytes > keep; ++piece) {
            leaving.push_back({*piece, list.stream.get() != nullptr ? KeptStream(*list.stream.get()) : KeptStream()});
            list.bytes -= size_of(number);
            --shard.figures.cached_count;
            shard.figures.cached_bytes -= size_of(number);
        }
        pieces.erase(pieces.begin(), piece);
    }
}

void Cache::empty_closed(std::vector<Leaving>& leaving) {
    std::vector<std::unique_ptr<List>> closed;  // let go of after the locks: that may destroy the stream
    for (Shard& shard : shards_) {
        const Lock lock(shard.mutex);
        for (std::unique_ptr<List>& list : shard.lists) {
            const Stream* const stream = list->stream.get();
            if (stream == nullptr || !stream->is_closed()) continue;
            take_out(shard, *list, 0, leaving);
            closed.push_back(std::move(list));
        }
        shard.lists.erase(std::remove(shard.lists.begin(), shard.lists.end(), nullptr), shard.lists.end());
    }
}

void Cache::empty(std::size_t keep, std::vector<Leaving>& leaving) {
    std::size_t kept = 0;
    std::vector<std::unique_ptr<List>> emptied;
    for (Shard& shard : shards_) {
        const Lock lock(shard.mutex);
        for (std::unique_ptr<List>& list : shard.lists) {
            take_out(shard, *list, keep - kept, leaving);
            kept += list->bytes;
            if (list->bytes == 0) emptied.push_back(std::move(list));
        }
        shard.lists.erase(std::remove(shard.lists.begin(), shard.lists.end(), nullptr), shard.lists.end());
    }
}

void Cache::count_made(std::size_t bytes) {
    Shard& shard = shard_of(0);
    const Lock lock(shard.mutex);
    ++shard.figures.in_use_count;
    shard.figures.in_use_bytes += rounded(bytes);
    ++shard.figures.misses;
}

void Cache::count_freed(std::size_t bytes) {
    Shard& shard = shard_of(0);
    const Lock lock(shard.mutex);
    --shard.figures.in_use_count;
    shard.figures.in_use_bytes -= rounded(bytes);
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
