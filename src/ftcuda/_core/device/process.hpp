// The end of the process, at which handles are leaked on purpose.
#pragma once

#include "../sync/fork.hpp"

#include <atomic>

namespace ftcuda::core::process {

enum class State : unsigned char { running, exiting, exiting_slowly };

// Written at exit, read before every driver call. Relaxed: it guards no other data, and a thread that races with the
// exit may still make one last call, as in any program.
extern std::atomic<State> state;

// From now on destructors leave driver handles alone: the driver may already be gone. `slowly`: calls in other threads
// wait first. True for the first call.
bool begin_exit(bool slowly) noexcept;

inline bool may_destroy() noexcept { return state.load(std::memory_order_relaxed) == State::running && !is_forked(); }

// For a thread that is about to call the driver, detached from the interpreter: see begin_exit().
void wait_at_exit() noexcept;
inline void pass_exit() noexcept {
    if (state.load(std::memory_order_relaxed) == State::exiting_slowly) wait_at_exit();
}

}  // namespace ftcuda::core::process
