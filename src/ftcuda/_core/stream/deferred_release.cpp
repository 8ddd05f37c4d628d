#include "deferred_release.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/mailbox.hpp"
#include "../sync/fork.hpp"

#include <algorithm>
#include <deque>

namespace ftcuda::core::deferred_release {

using driver::cu;
using namespace abi;

namespace {

struct Kept {
    Context* context;  // of the event
    CUevent event;     // null: nothing to wait for
    void* object;
};

// How many are asked after in one call: work that never ends must not make every call look at everything.
constexpr std::size_t look_limit = 8;

Mutex mutex{Rank::deferred_release};
std::deque<Kept>& waiting GUARDED_BY(mutex) = *new std::deque<Kept>;  // never destroyed: daemon threads outlive main()

// How many wait. Relaxed: who sees an old number asks at its next call.
std::atomic<std::size_t> count{0};

Status record(Stream& stream, CUevent& event) {
    const Lease<Stream> lease(stream);
    if (!lease) return Reason::closed;
    Context& context = stream.context();
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    bool capturing = false;
    if (const Status status = stream.is_capturing(capturing); !status.ok()) return status;
    if (capturing) return Reason::capturing;  // the event would become part of the graph
    return context.record(stream.cu_stream(), event);
}

void put(const Kept& object) {
    if (is_forked()) return;
    const Lock lock(mutex);
    waiting.push_back(object);
    count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void defer(Stream& stream, void* object) {
    CUevent event = nullptr;
    Context& context = stream.context();
    const Status status = record(stream, event);
    if (status.ok()) {
        defer(context, event, object);
    } else {
        if (status.reason() == Reason::driver) mailbox::post(status, "keep", "an array");
        context.retire([&context, object] { defer(context, nullptr, object); });
    }
}

void defer(Context& context, CUevent event, void* object) { put({&context, event, object}); }

bool is_over(Context& context, CUevent event) noexcept {
    if (event != nullptr && !context.is_reached(event)) return false;
    if (event != nullptr) context.release_event(event);
    return true;
}

Status wait_for(Context& context, CUevent event) noexcept {
    const RelaxedCapture relaxed;
    const Status status = context.observe(cu.cuEventSynchronize(event));
    context.release_event(event);
    return status;
}

Status order_after(Stream& stream, Context& context, CUevent event) noexcept {
    const Submission submission(stream);
    if (!submission.status().ok()) return submission.status();  // the event is still the caller's
    const ContextScope scope(stream.context());
    if (!scope.status().ok()) return scope.status();
    bool capturing = false;
    if (const Status status = stream.is_capturing(capturing); !status.ok()) return status;
    if (capturing) return Reason::capturing;
    const Status status = stream.context().observe(cu.cuStreamWaitEvent(stream.cu_stream(), event, 0));
    if (status.ok()) context.release_event(event);
    return status;
}

ForeignReference::~ForeignReference() { put({nullptr, nullptr, object_}); }

bool is_pending() noexcept { return count.load(std::memory_order_relaxed) != 0; }

void* pop_done() {
    if (is_forked()) return nullptr;
    const std::size_t looks = std::min(look_limit, count.load(std::memory_order_relaxed));
    for (std::size_t look = 0; look < looks; ++look) {
        Kept oldest{};
        {
            const Lock lock(mutex);
            if (waiting.empty()) return nullptr;
            oldest = waiting.front();
            waiting.pop_front();
        }
        if (oldest.event == nullptr || is_over(*oldest.context, oldest.event)) {
            count.fetch_sub(1, std::memory_order_relaxed);
            return oldest.object;
        }
        const Lock lock(mutex);
        waiting.push_back(oldest);
    }
    return nullptr;
}

}  // namespace ftcuda::core::deferred_release
