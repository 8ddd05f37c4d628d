// A forked child has none of its parent's other threads: what they had locked stays locked, and what they were changing
// stays half changed. Nothing is locked or destroyed there: calls answer Reason::forked, and what is let go of leaks.
#pragma once

#include <atomic>

namespace ftcuda::core {

// Arranges for is_forked() to be true in forked children. Idempotent.
void watch_forks();

// Written in a child, where no other thread exists. Relaxed: it guards no other data.
extern std::atomic<bool> forked;
inline bool is_forked() noexcept { return forked.load(std::memory_order_relaxed); }

}  // namespace ftcuda::core
