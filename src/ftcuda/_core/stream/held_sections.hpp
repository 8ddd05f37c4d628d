// The exclusive sections that each thread is in, so that a thread which ends gives them up.
#pragma once

#include "stream.hpp"

namespace ftcuda::core::held_sections {

// Notes that the calling thread began a section of `stream`. When the thread ends before the section does, the section
// is abandoned.
void remember(Stream& stream, std::uint64_t number);

// The section has ended; does nothing if another thread began it.
void forget(Stream& stream, std::uint64_t number) noexcept;

// A number for a task, which no other one has or gets.
std::uint64_t next_task() noexcept;

// A task of the calling thread has ended: it gives up what it began in sections of the thread.
void give_up(std::uint64_t task) noexcept;

}  // namespace ftcuda::core::held_sections
