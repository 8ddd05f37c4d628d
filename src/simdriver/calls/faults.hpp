// The fault plan: which calls fail, wait, or end their context.
#pragma once

#include "calls.hpp"

namespace ftcuda::sim {

// As in control.hpp, which stands above: control.cpp compares them.
enum class FaultAction : int { fail, hold, poison, hold_after };

struct Fault {
    std::string entry;         // exported symbol
    std::uint64_t nth = 0;     // 1 = the next matching call
    std::uint64_t thread = 0;  // 0 = any
    FaultAction action = FaultAction::fail;
    CUresult value = CUDA_SUCCESS;
};

// The calling thread's calls are not counted from now on, and no fault is meant for them: no test has asked for them.
void leave_out_thread() noexcept;

// Counts the call. True if a fault applies; `result` is then what the call answers.
bool apply_faults(Call call, CUresult& result);
// Waits where a fault holds the calling thread's call after its effect.
void leave_call() noexcept;

std::uint64_t calls_of(const char* symbol);  // of all entries when null
const char* name_of(std::uint64_t index);    // null past the last entry
std::uint64_t add_fault(Fault fault);
void release_fault(std::uint64_t id);
std::uint64_t fault_hits(std::uint64_t id);
std::uint64_t fault_waiting(std::uint64_t id);
void clear_faults();

}  // namespace ftcuda::sim
