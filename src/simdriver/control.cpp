// The control surface.
#include "control.hpp"

#include "faults.hpp"
#include "gate.hpp"

#include <algorithm>
#include <cstring>

namespace ftcuda::sim {

namespace {

std::size_t copy_text(const std::string& text, char* target, std::size_t capacity) {
    if (capacity != 0) {
        const std::size_t length = std::min(text.size(), capacity - 1);
        std::memcpy(target, text.data(), length);
        target[length] = '\0';
    }
    return text.size();
}

std::uint64_t violation_count() {
    const Guard lock(world().mutex);
    return world().violation_count;
}

std::size_t violation_text(std::uint64_t index, char* text, std::size_t capacity) {
    const Guard lock(world().mutex);
    return index < world().violations.size() ? copy_text(world().violations[index], text, capacity) : 0;
}

void clear_violations() {
    const Guard lock(world().mutex);
    world().violations.clear();
    world().violation_count = 0;
}

void count_allocations(int object, std::uint64_t& count, std::uint64_t& bytes) {
    const Kind kind = object == FTCUDA_SIM_DEVICE_ALLOCATION   ? Kind::device
                      : object == FTCUDA_SIM_PINNED_ALLOCATION ? Kind::pinned
                                                               : Kind::managed;
    for (const auto& [begin, allocation] : world().allocations) {
        if (allocation.kind != kind || allocation.module_owned) continue;
        ++count;
        bytes += allocation.size;
    }
}

std::uint64_t live(int object) {
    World& w = world();
    const Guard lock(w.mutex);
    switch (object) {
    case FTCUDA_SIM_CONTEXT: {
        std::uint64_t retained = 0;
        for (const std::shared_ptr<Context>& context : w.contexts) retained += context->retained != 0 ? 1 : 0;
        return retained;
    }
    case FTCUDA_SIM_STREAM: return w.streams.size();
    case FTCUDA_SIM_EVENT: return w.events.size();
    case FTCUDA_SIM_MODULE: return w.modules.size();
    case FTCUDA_SIM_POOL: return w.pools.size() - w.default_pools.size();
    default: break;
    }
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    count_allocations(object, count, bytes);
    return count;
}

std::uint64_t live_bytes(int object) {
    const Guard lock(world().mutex);
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    count_allocations(object, count, bytes);
    return bytes;
}

void hold() {
    const Guard lock(world().mutex);
    world().held = true;
}

void release_clock() {
    const Guard lock(world().mutex);
    world().held = false;
    world().progress.notify_all();
}

void limit_memory(int device, std::uint64_t bytes) {
    const Guard lock(world().mutex);
    if (device >= 0 && static_cast<std::size_t>(device) < world().memory_limits.size()) {
        world().memory_limits[static_cast<std::size_t>(device)] = bytes;
    }
}

std::size_t last_fault_text(char* text, std::size_t capacity) {
    const Guard lock(world().mutex);
    return copy_text(world().last_fault, text, capacity);
}

std::uint64_t add_fault_of(const FtcudaSimFault* fault) { return add_fault(*fault); }

const FtcudaSimControl control = {
    1,           violation_count, violation_text, clear_violations, live,          live_bytes,   calls_of,     hold,
    release_clock, this_thread,   add_fault_of,   release_fault,    fault_hits,    fault_waiting, clear_faults, limit_memory,
    last_fault_text,
};

}  // namespace

}  // namespace ftcuda::sim

extern "C" __attribute__((visibility("default"))) const FtcudaSimControl* ftcuda_sim_control() {
    return &ftcuda::sim::control;
}
