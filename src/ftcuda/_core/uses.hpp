// The streams that work was submitted to with a buffer: the set that must be done with it before it is freed.
//
// A set that only grows, read and extended without a lock: slots are claimed by a compare-exchange on the stream's id.
// Threads add while they hold a lease on the buffer; the one that destroys the buffer reads after the last of them left,
// so plain fields beside an id need no order of their own.
#pragma once

#include "stream.hpp"

#include <array>

namespace ftcuda::core {

// A stream known by its id and kept alive.
struct Use {
    std::atomic<std::uint64_t> stream_id{0};  // 0 = free slot. Acquire-release: a claimed slot stays with its stream.
    Stream* stream = nullptr;

    // For a default stream, the event recorded behind the latest work: by the time of the free another thread could not
    // name that thread's stream. Published once by compare-exchange, since the legacy stream is shared between threads.
    std::atomic<abi::CUevent> event{nullptr};
};

class Uses {
public:
    Uses() noexcept = default;
    ~Uses();
    Uses(const Uses&) = delete;
    Uses& operator=(const Uses&) = delete;

    // Lets go of all streams and events. For the one who destroyed the buffer.
    void clear() noexcept;

    // Adds `stream` unless it is there. The caller has a submission to it.
    Use& add(Stream& stream, std::uint64_t id);

    template <class Visitor>
    void for_each(Visitor visit) {
        for (Block* block = &first_; block != nullptr; block = block->next.load(std::memory_order_acquire)) {
            for (Use& use : block->uses) {
                if (use.stream != nullptr) visit(use);
            }
        }
    }

private:
    struct Block {
        std::array<Use, 4> uses;
        std::atomic<Block*> next{nullptr};  // published with release, read with acquire
    };

    Block first_;
};

}  // namespace ftcuda::core
