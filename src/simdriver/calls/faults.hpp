// The fault plan: which calls fail, wait, or end their context.
#pragma once

#include "gate.hpp"

namespace ftcuda::sim {

// Counts the call. True if a fault applies; `result` is then what the call answers.
bool apply_faults(Call call, CUresult& result);
// Waits where a fault holds the calling thread's call after its effect.
void leave_call() noexcept;

std::uint64_t calls_of(const char* symbol);  // of all entries when null
const char* name_of(std::uint64_t index);    // null past the last entry
std::uint64_t add_fault(const FtcudaSimFault& fault);
void release_fault(std::uint64_t id);
std::uint64_t fault_hits(std::uint64_t id);
std::uint64_t fault_waiting(std::uint64_t id);
void clear_faults();

}  // namespace ftcuda::sim
