// A completion that the one who waits asks for: a thread that a test schedules, of which the reactor knows nothing.
#pragma once

#include "completion.hpp"

namespace ftcuda::core {

class PolledCompletion {
public:
    // Whether the calling thread is such a one.
    static bool is_wanted() noexcept;

    explicit PolledCompletion(Context& context) { completion_.emplace_back(context, nullptr); }

    Status begin(Awaited& awaited) { return awaited.arm(completion_.front()); }
    // CUDA_ERROR_NOT_READY, after others had a turn: ask again.
    Status ask() noexcept;

private:
    Completions completion_;
};

}  // namespace ftcuda::core
