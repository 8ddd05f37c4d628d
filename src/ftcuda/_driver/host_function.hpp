// Whether this thread is in a function that a stream waits for. Such a function is work of the device, and makes no
// call of the driver: some calls wait until the device is idle, and let nobody else in until then (decision 35).
#pragma once

#include <atomic>

namespace ftcuda::driver::host_function {

// How many threads are. Relaxed: each looks for itself only, and in most programs none ever is.
extern std::atomic<unsigned> running;
bool is_this_thread() noexcept;

inline bool is_here() noexcept { return running.load(std::memory_order_relaxed) != 0 && is_this_thread(); }

// By the thread. What has not begun may end.
void begin() noexcept;
void end() noexcept;

}  // namespace ftcuda::driver::host_function
