// A word that threads wait for: in the system, by its address, so that who changes a word for which nobody waits makes
// no call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ftcuda::core::word {

// Sleeps while the word has this value, until wake() or for so long; or less, for no reason.
void wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::microseconds time) noexcept;

// All who sleep there.
void wake(const std::atomic<std::uint32_t>& word) noexcept;

}  // namespace ftcuda::core::word
