// What a call of the core came to: success, what the driver said, or an outcome that is the core's own.
#pragma once

#include "../../_driver/status.hpp"

#include <cstdint>

namespace ftcuda::core {

using driver::Entry;

enum class Reason : std::uint8_t {
    // The driver layer's, by its numbers: nothing is wrong, the driver answered `code`, it has no such entry point, or
    // this thread is in a function that a stream waits for.
    none = static_cast<std::uint8_t>(driver::Reason::none),
    driver = static_cast<std::uint8_t>(driver::Reason::driver),
    absent = static_cast<std::uint8_t>(driver::Reason::absent),
    in_host_function = static_cast<std::uint8_t>(driver::Reason::in_host_function),
    // The core's own.
    not_supported,     // the device or driver mode lacks the feature
    closed,            // the object was closed
    poisoned,          // an earlier failure, `code` reported by `entry`, ended the context
    forked,            // this process is a fork of the one that used the driver
    wrong_device,      // two objects of different devices in one call
    not_found,         // no such symbol
    capturing,         // a stream is being captured
    timed_out,         // a wait came to its limit; what it waited for runs on
    interrupted,       // a wait was ended by the one who is asked for that
    abandoned,         // whoever was in the exclusive section will not end it; it is ended now
    other_task,        // another task of this thread is in the exclusive section
    not_building,      // a graph builder takes work only between its begin and its end
    begun,             // it has begun already, and begins once
    unended,           // it has not ended well, and has no graph yet
    body_unended,      // a graph within it, which began to build, has not ended
    unjoined,          // a part of it was not joined
    has_parameters,    // launches of it replace arguments
    other_attributes,  // a shape in place of another one has not the same
    only_instance,     // the driver makes one executable of it at a time
    gone,              // a node or a graph within another one was destroyed
    other_graph,       // a node of another graph
    stays,             // executables will be made of a graph, which does not change until then
    updated,           // its nodes are not those that it was made of any more
    too_small,         // memory in it ends before what is read or written
    no_builder,        // memory of graphs is asked for in a stream that is no graph builder's
    in_builder,        // a pool's memory is asked for in a graph builder
    in_body,           // the driver allocates and frees nothing in the bodies of conditional nodes
    memory_of_others,  // the memory is of another graph than the builder's
    memory_of_buffer,  // the memory is a buffer's, which frees it
    other_kernel,      // the node has another kernel by now
    has_memory,        // a graph that allocates memory, which is no part of another one
    unlaunched,        // memory of a graph that was never launched
    unfreed,           // what launches before have allocated is not freed
    unplaced,          // a condition in it has no conditional node
    builders,          // it is a graph builder's, and is not waited for
    spoilt,            // a part of what it builds was lost
    cancelled,         // somebody gave it up
    expired,           // its deadline came before it was begun
    queue_full,        // as much waits as may
    raised,            // what was to compute it has raised an exception
    other_capture,     // what is waited for is part of the capture of a graph builder, and who waits is not
    captured_event,    // a capture that goes on has recorded the event, which others would take from it
};

class [[nodiscard]] Status {
public:
    constexpr Status() noexcept = default;
    constexpr Status(Reason reason, Entry entry = Entry::none, abi::CUresult code = 0) noexcept
        : code_(code), entry_(entry), reason_(reason) {}
    // What a call of the driver came to is what the core's call came to.
    constexpr Status(driver::Status status) noexcept
        : code_(status.code()), entry_(status.entry()), reason_(static_cast<Reason>(status.reason())) {}

    static constexpr Status from_driver(abi::CUresult code, Entry entry) noexcept {
        return driver::Status::from_driver(code, entry);
    }

    constexpr bool ok() const noexcept { return reason_ == Reason::none; }
    constexpr Reason reason() const noexcept { return reason_; }
    constexpr Entry entry() const noexcept { return entry_; }
    constexpr abi::CUresult code() const noexcept { return code_; }

    constexpr bool is(abi::CUresult code) const noexcept { return reason_ == Reason::driver && code_ == code; }

    // Success: silences [[nodiscard]] where a failure means nothing, and says so at the call.
    void ignore() const noexcept {}

private:
    abi::CUresult code_ = abi::CUDA_SUCCESS;
    Entry entry_ = Entry::none;
    Reason reason_ = Reason::none;
};

static_assert(sizeof(Status) == sizeof(driver::Status), "a Status travels in one register, and is the driver layer's");

}  // namespace ftcuda::core
