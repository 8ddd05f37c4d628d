// One exclusive section of a stream, as a thing that is passed on: who has it may end what was begun with it, in
// whatever thread. Who lets go of it without that abandons the section.
#pragma once

#include "stream.hpp"

namespace ftcuda::core {

class Section {
public:
    explicit Section(Stream& stream) noexcept : stream_(stream) {}
    ~Section();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

    // See Stream::begin_exclusive(). Reentrant.
    Status begin(std::uint64_t task);
    // False if it was not begun, or has ended.
    bool end() noexcept;

private:
    // Constant after construction.
    const Ref<Stream> stream_;

    // Which section it is, and how often it was begun and not ended. Relaxed: whoever begins and ends does so one after
    // the other, by the stream's own lock; who ends what nobody has begun gets an answer, whichever.
    std::atomic<std::uint64_t> number_{0};
    std::atomic<unsigned> levels_{0};
};

}  // namespace ftcuda::core
