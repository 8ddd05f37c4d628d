// One exclusive section of a stream, as a thing that is passed on: who has it may end what was begun with it, in
// whatever thread. Who lets go of it without that abandons the section.
#pragma once

#include "stream.hpp"

namespace ftcuda::core {

class Section {
public:
    explicit Section(Stream& stream) noexcept : stream_(stream) {}
    // Levels that were begun through other objects are ended through those.
    ~Section() { stream_->drop_exclusive(this); }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

    // See Stream::begin_exclusive(). Reentrant.
    Status begin(std::uint64_t task) { return stream_->begin_exclusive(this, task); }
    // False if it was not begun, or has ended.
    bool end() noexcept { return stream_->end_exclusive(this); }

private:
    const Ref<Stream> stream_;
};

}  // namespace ftcuda::core
