#include "scratch.hpp"

#include "../device/deferred_errors.hpp"

#include <set>

namespace ftcuda::core {

namespace {

// Each once, however many launches have it.
std::set<const Buffer*> captured_by(const std::vector<const CapturedLaunch*>& launches) {
    std::set<const Buffer*> found;
    for (const CapturedLaunch* const launch : launches) {
        for (const std::size_t index : launch->scratch()) found.insert(launch->arguments().buffer(index));
    }
    return found;
}

}  // namespace

Status Scratch::allocate(Context& context, const std::vector<const CapturedLaunch*>& launches, Ref<Scratch>& scratch) {
    const std::set<const Buffer*> captured = captured_by(launches);
    if (captured.empty()) return {};
    // Plain: it is there for whatever stream comes first.
    const Ref<MemoryResource> resource = MemoryResource::plain(context, MemoryKind::device);
    const Ref<Scratch> made = Ref<Scratch>::adopt(new Scratch);
    for (const Buffer* const each : captured) {
        Ref<Buffer> own;
        if (const Status status = Buffer::allocate(*resource, each->size(), nullptr, own); !status.ok()) return status;
        made->own_.emplace(each, std::move(own));
    }
    scratch = made;
    return {};
}

std::size_t Scratch::size(const std::vector<const CapturedLaunch*>& launches) {
    std::size_t bytes = 0;
    for (const Buffer* const each : captured_by(launches)) bytes += each->size();
    return bytes;
}

Scratch::~Scratch() {
    for (const auto& [captured, own] : own_) {
        Buffer::ReleasedHolder released;  // none: the memory is ours
        deferred_errors::add(own->close(nullptr, true, false, released), "free", "scratch memory of a graph");
    }
}

}  // namespace ftcuda::core
