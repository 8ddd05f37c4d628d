// The control surface of the simulated driver: what a test may see and steer beyond the driver's ABI.
//
// Obtained with `dlsym(library, "ftcuda_sim_control")`. Plain C types only, so that any language can use it. Every
// function may be called from any thread, before or after cuInit, and never blocks on simulated work except where its
// name says so.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

enum FtcudaSimObject : int {
    FTCUDA_SIM_CONTEXT,  // retained primary contexts
    FTCUDA_SIM_STREAM,
    FTCUDA_SIM_EVENT,
    FTCUDA_SIM_MODULE,
    FTCUDA_SIM_POOL,               // pools made by cuMemPoolCreate
    FTCUDA_SIM_DEVICE_ALLOCATION,  // of graphs, what launches allocated and nothing has freed
    FTCUDA_SIM_PINNED_ALLOCATION,
    FTCUDA_SIM_MANAGED_ALLOCATION,
    FTCUDA_SIM_REGISTERED_MEMORY,
    FTCUDA_SIM_LIBRARY,
    FTCUDA_SIM_GRAPH,  // child graphs and bodies too
    FTCUDA_SIM_EXECUTABLE,
    FTCUDA_SIM_OBJECT_KINDS,
};

enum FtcudaSimFaultAction : int {
    FTCUDA_SIM_FAIL,        // return `value` as the status without doing anything
    FTCUDA_SIM_HOLD,        // wait at the entry until ftcuda_sim_release(fault)
    FTCUDA_SIM_POISON,      // do nothing, mark the current context failed with status `value`, return it
    FTCUDA_SIM_HOLD_AFTER,  // do it, then wait before the answer is returned, until the fault is released
};

struct FtcudaSimFault {
    const char* entry;     // exported symbol, for instance "cuMemAllocAsync"
    std::uint64_t nth;     // 1 = the next matching call
    std::uint64_t thread;  // 0 = any thread, else an id from this_thread()
    int action;            // FtcudaSimFaultAction
    int value;             // CUresult for FAIL and POISON
};

enum FtcudaSimEnding : int {
    FTCUDA_SIM_FINISHED,
    FTCUDA_SIM_DEADLOCK,  // nobody could go on
    FTCUDA_SIM_STUCK,     // the thread whose turn it was did nothing for 20 seconds
    FTCUDA_SIM_LATE,      // the time was over
};

struct FtcudaSimControl {
    int version;  // of this struct: 4

    // Violations: what correct programs never do (stale or foreign handle, double destroy, free before last use, leak
    // of a capture, ...). They are counted and described; the oldest 256 texts are kept.
    std::uint64_t (*violation_count)();
    std::size_t (*violation_text)(std::uint64_t index, char* text, std::size_t capacity);  // returns the full length
    void (*clear_violations)();

    std::uint64_t (*live)(int object);          // FtcudaSimObject
    std::uint64_t (*live_bytes)(int object);    // of the allocation kinds
    std::uint64_t (*calls)(const char* entry);  // calls of an entry so far; all entries when null
    const char* (*entry)(std::uint64_t index);  // the entries' names; null past the last

    // The device's clock. Held: streams accept work but run none of it until released, or stepped.
    void (*hold)();
    void (*release)();

    std::uint64_t (*this_thread)();
    std::uint64_t (*add_fault)(const FtcudaSimFault* fault);  // returns an id
    void (*release_fault)(std::uint64_t id);                  // lets callers waiting in HOLD go, and removes the fault
    std::uint64_t (*fault_hits)(std::uint64_t id);
    std::uint64_t (*fault_waiting)(std::uint64_t id);  // threads held at this moment
    void (*clear_faults)();

    void (*limit_memory)(int device, std::uint64_t bytes);  // what the device may hand out in all; 0 = its whole memory
    std::size_t (*last_fault_text)(
        char* text, std::size_t capacity);  // the latest kernel fault, empty if none; returns the full length

    void (*watch_races)(int on);  // missing order between streams becomes a violation (checkers/races.hpp)

    // The seeded scheduler (schedule/scheduler.hpp). Begin waits until nothing runs; 0 if a session is under way. The
    // threads of the test then enter, each with its index, and leave; the thread that began waits for the end.
    int (*schedule_begin)(int kind, unsigned depth, std::uint64_t seed, unsigned threads);  // kind 0: random, 1: PCT
    int (*schedule_wait)(
        std::uint64_t milliseconds);  // FtcudaSimEnding; unless finished, everybody stands still until schedule_abandon
    std::size_t (*schedule_report)(char* text,
                                   std::size_t capacity);  // where everybody stood at the end; returns the full length
    std::uint64_t (*schedule_steps)();
    std::uint64_t (*schedule_trace)();  // the same seed gives the same
    void (*schedule_enter)(std::uint64_t index);
    void (*schedule_leave)();
    int (*schedule_is_on)();                                              // for the calling thread
    void (*schedule_point)(const char* where);                            // `where` must live for ever
    int (*schedule_park)(const void* key, const char* where);             // 0 at once outside a session
    int (*schedule_park_for_holder)(const void* key, const char* where);  // of a lock, which others may hold
    void (*schedule_unpark)(const void* key);
    void (*schedule_hold)(const void* key);  // this thread has what others park for, until schedule_let_go
    void (*schedule_let_go)(const void* key);
    void (*schedule_abandon)();  // lets everybody run freely after a session that ended badly
    // How a thread lets go of its interpreter while it waits for its turn (schedule/scheduler.hpp).
    void (*schedule_set_detachment)(void* (*detach)(), void (*attach)(void*));

    // Simulated time that the test moves (schedule/clock.hpp). Begin answers 0 if it has begun. What waits for a number
    // of threads answers 0 when the milliseconds are over first; nanoseconds are of the simulated time.
    int (*clock_begin)();
    void (*clock_end)();
    std::int64_t (*clock_now)();  // nanoseconds since then
    std::uint64_t (*clock_waiting)();
    int (*clock_wait)(unsigned threads, std::uint64_t milliseconds);
    // Back when all that waited have seen the new time; a scheduled thread at once. -1: time would end.
    int (*clock_advance)(std::int64_t nanoseconds, std::uint64_t milliseconds);
    int (*clock_delay)(void* stream, std::int64_t nanoseconds);  // CUresult
};

const FtcudaSimControl* ftcuda_sim_control();
}
