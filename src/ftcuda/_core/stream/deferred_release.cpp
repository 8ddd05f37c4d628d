#include "deferred_release.hpp"

#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/mailbox.hpp"
#include "../sync/fork.hpp"

#include <algorithm>
#include <utility>

namespace ftcuda::core::deferred_release {

using driver::cu;
using namespace abi;

namespace {

// How many are asked after in one call: work that never ends must not make every call look at everything.
constexpr std::size_t look_limit = 8;

// First in, first out; owns what is in it.
class Queue {
public:
    void put(Retained& retained) noexcept EXCLUDES(mutex_) {
        const Lock lock(mutex_);
        retained.next = nullptr;
        *(last_ == nullptr ? &first_ : &last_->next) = &retained;
        last_ = &retained;
        count_.fetch_add(1, std::memory_order_relaxed);
    }
    Retained* take() noexcept EXCLUDES(mutex_) {
        if (count() == 0) return nullptr;
        const Lock lock(mutex_);
        Retained* const oldest = first_;
        if (oldest == nullptr) return nullptr;
        first_ = oldest->next;
        if (first_ == nullptr) last_ = nullptr;
        count_.fetch_sub(1, std::memory_order_relaxed);
        return oldest;
    }
    std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

private:
    Mutex mutex_{Rank::deferred_release};
    Retained* first_ GUARDED_BY(mutex_) = nullptr;
    Retained* last_ GUARDED_BY(mutex_) = nullptr;
    std::atomic<std::size_t> count_{0};  // relaxed: who sees an old number asks at its next call
};

// Never destroyed: daemon threads outlive main().
Queue& waiting = *new Queue;  // for events
Queue& done = *new Queue;

// The oldest of the first few that wait whose event is reached; null if there is none.
Retained* take_reached() noexcept {
    const std::size_t looks = std::min(look_limit, waiting.count());
    for (std::size_t look = 0; look < looks; ++look) {
        Retained* const oldest = waiting.take();
        if (oldest == nullptr || is_over(*oldest->context, oldest->event)) return oldest;
        waiting.put(*oldest);
    }
    return nullptr;
}

// Of a graph that is gone; called by the driver, which is not to be called from here.
void graph_is_gone(void* retained) { Release()(static_cast<Retained*>(retained)); }

}  // namespace

void Release::operator()(Retained* retained) const noexcept {
    if (!is_forked()) done.put(*retained);
}

void release_after(Context& context, CUevent event, Retention retention) noexcept {
    if (event == nullptr || is_forked()) return;
    retention->context = &context;
    retention->event = event;
    waiting.put(*retention.release());
}

void release_after_work(Stream& stream, Retention retention) noexcept {
    if (!retention) return;  // it is a graph's
    Context& context = stream.context();
    CUevent event = nullptr;
    const Status status = context.record(stream.cu_stream(), event);
    if (status.ok()) {
        release_after(context, event, std::move(retention));
    } else if (context.usable().ok()) {
        mailbox::post(status, "retain", "an array");
        release_when_idle(context, std::move(retention));
    }  // else the context has failed, and no work uses anything any more
}

void release_when_idle(Context& context, Retention retention) {
    if (!retention) return;
    context.retire([retained = retention.get()] { Release()(retained); });
    retention.release();
}

Status release_with_graph(Context& context, CUgraph graph, Retention retention) noexcept {
    CUuserObject object = nullptr;
    Status status = context.observe(
        cu.cuUserObjectCreate(&object, retention.get(), graph_is_gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    if (!status.ok()) return status;
    retention.release();  // the driver's, which calls graph_is_gone
    status = context.observe(cu.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    if (!status.ok()) cu.cuUserObjectRelease(object, 1).ignore();
    return status;
}

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

bool is_pending() noexcept { return done.count() != 0 || waiting.count() != 0; }

void* pop_done() {
    if (is_forked()) return nullptr;
    for (;;) {
        Retained* found = done.take();
        if (found == nullptr) found = take_reached();
        if (found == nullptr) return nullptr;
        const std::unique_ptr<Retained> mine(found);  // whose references may let go of more
        if (mine->object != nullptr) return mine->object;
    }
}

}  // namespace ftcuda::core::deferred_release
