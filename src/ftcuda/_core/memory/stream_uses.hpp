// The streams that work was submitted to with a buffer: the set that must be done with it before it is freed.
//
// Read and changed without a lock: slots are acquired by a compare-exchange on the stream's id. Threads add while they
// hold a lease on the buffer; the one that destroys the buffer reads after the last of them left. Before the set grows,
// streams that are closed and done leave it, and default streams whose latest work is done.
#pragma once

#include "../stream/stream.hpp"

#include <array>

namespace ftcuda::core {

// A stream known by its id and kept alive.
struct Use {
    static constexpr std::uint64_t taken = ~std::uint64_t{0};  // by a thread that fills or empties the slot

    // 0: a free slot. Whoever exchanged it for `taken` owns `stream` and `event`, and releases them with the id that it
    // stores then.
    std::atomic<std::uint64_t> stream_id{0};
    Stream* stream = nullptr;

    // For a default stream, the event behind its latest work: by the time of the free another thread could not name
    // that thread's stream.
    abi::CUevent event = nullptr;
};

class StreamUses {
public:
    StreamUses() noexcept = default;
    ~StreamUses();
    StreamUses(const StreamUses&) = delete;
    StreamUses& operator=(const StreamUses&) = delete;

    // Lets go of all streams and events. For the one who destroyed the buffer.
    void clear() noexcept;

    // Adds the first stream, while nobody else knows of the set.
    void begin(Stream& stream, std::uint64_t id) noexcept;
    // Adds `stream` unless it is there. The caller has a submission to it, so that it cannot leave the set meanwhile.
    // Returns the number of its slot, from 0: the same until the stream leaves the set. Streams in the set have
    // different ones.
    std::size_t add(Stream& stream, std::uint64_t id);

    // Adds `stream` unless it is there, and acquires its slot: the caller's until it releases it with `id`. Other
    // threads that look for the stream meanwhile add it a second time.
    Use& acquire(Stream& stream, std::uint64_t id);
    static void release(Use& use, std::uint64_t id) noexcept;

    // Marks the latest work in `stream`, a default one, by an event. False if that cannot be, because the stream is
    // captured or the driver fails, which is said of the use of a `noun`.
    bool mark(Stream& stream, const char* noun) noexcept;

    // Visits every use, with the id of its stream, while others add to the set. Each one is the caller's meanwhile, and
    // who acquired it is waited for.
    template <class Visitor>
    void visit(Visitor visit) {
        find_slot([&](Use& use) {
            const std::uint64_t id = wait_and_acquire(use);
            if (id != 0) {
                visit(use, id);
                release(use, id);
            }
            return false;
        });
    }

    // For the one who destroys.
    bool is_empty() noexcept {
        return find_slot([](Use& use) { return use.stream != nullptr; }) == nullptr;
    }

    template <class Visitor>
    void for_each(Visitor visit) {
        find_slot([&](Use& use) {
            if (use.stream != nullptr) visit(use);
            return false;
        });
    }

private:
    struct Block {
        std::array<Use, 4> uses;
        std::atomic<Block*> next{nullptr};  // published with release, read with acquire
    };

    // The first slot, free ones too, of which `is_wanted` is true; null if there is none.
    template <class Predicate>
    Use* find_slot(Predicate is_wanted) {
        for (Block* block = &first_; block != nullptr; block = block->next.load(std::memory_order_acquire)) {
            for (Use& use : block->uses) {
                if (is_wanted(use)) return &use;
            }
        }
        return nullptr;
    }

    // Acquires the first slot that holds `id`; null if there is none.
    Use* acquire_if(std::uint64_t id) noexcept;
    Use& acquire_free(Stream& stream);
    // The id that `use` had; 0 if it is free.
    static std::uint64_t wait_and_acquire(Use& use) noexcept;
    // Whether the slot held `id`, and is the caller's now.
    static bool take(Use& use, std::uint64_t id) noexcept;
    void forget_if_finished(Use& use) noexcept;
    void grow();

    Block first_;
};

}  // namespace ftcuda::core
