// By what a stream says that it has come somewhere: words in pinned memory, each on a line of its own, which the stream
// writes; and streams of ours, which wait for events of the user's. Of a context, for as long as that, which is for
// ever.
#pragma once

#include "../device/context.hpp"

#include <vector>

namespace ftcuda::core {

// A word that is to have a value. Whoever waits takes it, has it written behind the work, and gives it back once it is
// written: until then nobody else may have it.
struct Signal {
    struct alignas(64) Word {
        std::atomic<std::uint32_t> value{0};
    };

    Word* word = nullptr;
    std::uint32_t value = 0;

    // Acquire: the driver writes it behind a barrier, so that who finds it written sees what was done before.
    bool is_written() const noexcept { return word->value.load(std::memory_order_acquire) == value; }
};

class Signals {
public:
    // The context's own.
    static Signals& of(Context& context);

    explicit Signals(Context& context) noexcept : context_(context) {}
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    // Whether streams of the device write words (drivers of CUDA 11.7, and an attribute).
    bool are_there() const noexcept;

    // The context is current in all of these. What is not given back is lost.
    Status acquire(Signal& signal) EXCLUDES(mutex_);
    void release(Signal signal) EXCLUDES(mutex_);
    // A stream that nobody else waits in.
    Status acquire_stream(abi::CUstream& stream) EXCLUDES(mutex_);
    void release_stream(abi::CUstream stream) EXCLUDES(mutex_);
    // One in which something may be waited for that never comes.
    void destroy_stream(abi::CUstream stream);

private:
    static constexpr std::size_t words_of_page = 256;
    static constexpr std::size_t idle_streams_limit = 4;

    Status make_page() EXCLUDES(mutex_);

    Context& context_;
    Mutex mutex_{Rank::signals};
    std::vector<Signal> idle_ GUARDED_BY(mutex_);  // with the value that comes next
    std::vector<abi::CUstream> idle_streams_ GUARDED_BY(mutex_);
    std::size_t made_ GUARDED_BY(mutex_) = 0;  // words, for which there is room among the idle ones
};

}  // namespace ftcuda::core
