// Pinned host memory through which pageable memory is copied: chunks of a context, used again once their copy is done.
#pragma once

#include "../device/context.hpp"

#include <deque>

namespace ftcuda::core {

class Staging {
public:
    static constexpr std::size_t chunk_bytes = std::size_t{4} << 20;

    struct Chunk {
        void* memory = nullptr;
        abi::CUevent event = nullptr;  // recorded behind the copy that uses the chunk; null: nobody uses it
    };

    // The context's own.
    static Staging& of(Context& context);

    explicit Staging(Context& context) noexcept : context_(context) {}
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    // A chunk that nobody uses: an idle one, a new one, or, when there are many, the one that was released first, whose
    // copy is waited for. The context is current.
    Status acquire(Chunk& chunk) EXCLUDES(mutex_);
    // Until the copy that uses the chunk is done. The context is current.
    Status wait(Chunk& chunk);
    void release(Chunk chunk) EXCLUDES(mutex_);

    // Frees the chunks that nobody uses. Makes the context current.
    Status trim() EXCLUDES(mutex_);

private:
    // Beyond this number a thread waits for a chunk instead of making one: the link to the device is the limit by then.
    static constexpr std::size_t limit = 32;

    Status make(Chunk& chunk) EXCLUDES(mutex_);

    Context& context_;
    Mutex mutex_{Rank::staging};
    std::deque<Chunk> idle_ GUARDED_BY(mutex_);  // the one released first is in front
    std::size_t made_ GUARDED_BY(mutex_) = 0;
};

}  // namespace ftcuda::core
