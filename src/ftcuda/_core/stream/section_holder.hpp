// What an exclusive section is ended by, as a thing that is passed on: in whatever thread. Who lets go of it without
// ending what was begun with it gives that up.
#pragma once

#include "stream.hpp"

namespace ftcuda::core {

class SectionHolder {
public:
    explicit SectionHolder(Stream& stream) noexcept : stream_(stream) {}
    // Levels that were begun through other holders are ended through those.
    ~SectionHolder() { stream_->section().drop(this); }
    SectionHolder(const SectionHolder&) = delete;
    SectionHolder& operator=(const SectionHolder&) = delete;

    // Reentrant.
    Status begin(std::uint64_t task) { return stream_->section().begin(this, task); }
    // False if it was not begun, or has ended.
    bool end() noexcept { return stream_->section().end(this); }

private:
    const Ref<Stream> stream_;
};

}  // namespace ftcuda::core
