#include "deferred_release.hpp"

#include "../../_driver/background.hpp"
#include "../../_driver/table.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../device/process.hpp"
#include "../sync/fork.hpp"
#include "../sync/limit.hpp"
#include "../sync/may_wait.hpp"
#include "context_wait.hpp"
#include "handover.hpp"
#include "service.hpp"

#include <algorithm>
#include <utility>

namespace ftcuda::core::deferred_release {

using driver::cu;
using namespace abi;

namespace {

// How many of those that are not done a call looks at: work that never ends must not make it look at everything.
constexpr std::size_t look_limit = 8;

// From so many on, who adds one looks at two: a service that gets no time must not let them become more and more.
constexpr std::size_t many = 64;

// First in, first out; owns what is in it.
class Queue {
public:
    void put(Retained& retained) noexcept EXCLUDES(mutex_) {
        const Lock lock(mutex_);
        retained.next = nullptr;
        *(last_ == nullptr ? &first_ : &last_->next) = &retained;
        last_ = &retained;
        count_.fetch_add(1);
    }
    Retained* take() noexcept EXCLUDES(mutex_) {
        if (count() == 0) return nullptr;
        const Lock lock(mutex_);
        Retained* const oldest = first_;
        if (oldest == nullptr) return nullptr;
        first_ = oldest->next;
        if (first_ == nullptr) last_ = nullptr;
        count_.fetch_sub(1);
        return oldest;
    }
    std::size_t count() const noexcept { return count_.load(); }

private:
    Mutex mutex_{Rank::deferred_release};
    Retained* first_ GUARDED_BY(mutex_) = nullptr;
    Retained* last_ GUARDED_BY(mutex_) = nullptr;
    std::atomic<std::size_t> count_{0};  // sequentially consistent: see Service::wanted_
};

// Comes to what the callers do not: each turn looks at what waits, until it has found some that is not done.
class Sweep final : public Service {
public:
    Sweep() : Service(ServiceThread::common(), pause) {}
    // Looks begun and ended: odd while the service has one in its hands, which wait_for_look() waits for.
    std::uint64_t looks() const noexcept { return looks_.load(); }
    void wait_for_look() EXCLUDES(mutex_) { const Lock lock(mutex_); }
    // References taken and let go of: odd while the service has one in its hands. It holds no lock then: what goes with
    // that may take any, and may wait.
    std::uint64_t ends() const noexcept { return ends_.load(); }

private:
    static constexpr std::chrono::milliseconds pause{10};
    static constexpr int patience = 10;  // turns for which objects wait for a caller

    Pause turn() noexcept override EXCLUDES(mutex_);
    bool look() noexcept EXCLUDES(mutex_);
    void end_references() noexcept;

    Mutex mutex_{Rank::sweep};
    // Sequentially consistent, as the counts of the queues.
    std::atomic<std::uint64_t> looks_{0};
    std::atomic<std::uint64_t> ends_{0};
    // Of the service alone.
    std::uint64_t popped_ = 0;
    int turns_ = 0;
};

// Never destroyed: daemon threads outlive main(). What waits for an event; then, with an object of the caller's and
// without one, what is over.
Queue& waiting_queue = *new Queue;
Queue& objects = *new Queue;
Queue& references = *new Queue;
Sweep& sweep = *new Sweep;

// How many are retained, in a queue or in somebody's hands. Sequentially consistent, as the counts of the queues.
std::atomic<std::size_t> pending{0};
std::atomic<std::uint64_t> popped{0};  // how many objects were taken back. Relaxed: it guards no data

// What is done when it is let go of.
class PutOff final : public Shared {
public:
    explicit PutOff(std::function<void()> act) noexcept : act_(std::move(act)) {}

private:
    ~PutOff() override { act_(); }

    const std::function<void()> act_;
};

// Takes over one that is taken out of a queue: its object, the caller's from now on.
void* end(Retained* retained) noexcept {
    const std::unique_ptr<Retained> mine(retained);  // whose references may let go of more
    pending.fetch_sub(1);
    return mine->object;
}

void put_over(Retained& retained) noexcept { (retained.object == nullptr ? references : objects).put(retained); }

// CUDA_ERROR_NOT_READY while the work goes on, or others capture the stream.
Status ask(Retained& retained) noexcept {
    constexpr Status not_ready = Status::from_driver(CUDA_ERROR_NOT_READY, Entry::cuEventQuery);
    Context& context = *retained.context;
    if (!context.usable().ok()) return {};  // it ended with its context
    if (retained.event == nullptr) {
        const Status status = retained.mark(retained.event);
        if (!status.ok()) return status.reason() == Reason::capturing ? not_ready : status;
    }
    const Status status = context.ask(retained.event);
    if (!is_of_capture(status)) return status.ok() ? status : not_ready;
    context.destroy_event(std::exchange(retained.event, nullptr));
    return retained.mark ? not_ready : status;
}

// One of those that wait for events, if it is over.
Retained* take_if_over() noexcept {
    Retained* const oldest = waiting_queue.take();
    if (oldest == nullptr) return nullptr;
    const Status status = ask(*oldest);
    if (status.ok()) {
        if (oldest->event != nullptr) oldest->context->release_event(oldest->event);
        return oldest;
    }
    if (status.is(CUDA_ERROR_NOT_READY)) {
        waiting_queue.put(*oldest);
        return nullptr;
    }
    // Nothing says when the work is done.
    if (!is_of_capture(status)) deferred_errors::add(status, "mark", "work");
    release_when_idle(*oldest->context, Retention(oldest));
    pending.fetch_sub(1);
    return nullptr;
}

// The oldest of the first few that wait whose event is reached; null if there is none.
Retained* take_reached() noexcept {
    for (std::size_t looks = std::min(look_limit, waiting_queue.count()); looks != 0; --looks) {
        if (Retained* const found = take_if_over()) return found;
    }
    return nullptr;
}

bool Sweep::look() noexcept {
    if (!driver::background::may_go_on()) return false;
    const Lock lock(mutex_);
    ++looks_;
    Retained* const found = take_if_over();
    if (found != nullptr) put_over(*found);
    ++looks_;
    return found != nullptr;
}

void Sweep::end_references() noexcept {
    for (bool is_more = true; is_more;) {
        ++ends_;
        Retained* const found = references.take();
        is_more = found != nullptr;
        if (is_more) end(found);
        ++ends_;
    }
}

Service::Pause Sweep::turn() noexcept {
    if (!process::may_destroy()) return for_ever;
    if (!driver::background::may_go_on()) return pause;
    std::size_t misses = 0;
    for (std::size_t looks = waiting_queue.count(); looks != 0 && misses < look_limit; --looks) {
        if (!look()) ++misses;
    }
    end_references();
    const std::uint64_t popped_now = popped.load(std::memory_order_relaxed);
    turns_ = objects.count() == 0 || popped_now != popped_ ? 0 : turns_ + 1;
    popped_ = popped_now;
    if (turns_ > patience) handover::ask_for_release();
    return is_pending() ? Pause(pause) : for_ever;
}

void put_waiting(Context& context, Retention retention) noexcept {
    retention->context = &context;
    const bool is_long = waiting_queue.count() >= many;
    pending.fetch_add(1);
    waiting_queue.put(*retention.release());
    sweep.wake();
    for (int looks = is_long ? 2 : 0; looks != 0; --looks) {
        if (Retained* const found = take_if_over()) put_over(*found);
    }
}

// Of a graph that is gone; called by the driver, which is not to be called from here.
void graph_is_gone(void* retained) { Release()(static_cast<Retained*>(retained)); }

}  // namespace

void Release::operator()(Retained* retained) const noexcept {
    if (is_forked()) return;
    pending.fetch_add(1);
    put_over(*retained);
    sweep.wake();
}

void release_after(Context& context, CUevent event, Retention retention) noexcept {
    if (event == nullptr || is_forked()) return;
    retention->event = event;
    put_waiting(context, std::move(retention));
}

void release_after_capture(Context& context, Mark mark, Retention retention) noexcept {
    if (is_forked()) return;
    retention->mark = std::move(mark);
    put_waiting(context, std::move(retention));
}

void act_after_capture(Context& context, Mark mark, std::function<void()> act) {
    Retention retention;
    retain(retention, Ref<Shared>::adopt(new PutOff(std::move(act))));
    release_after_capture(context, std::move(mark), std::move(retention));
}

void release_when_idle(Context& context, Retention retention) {
    if (!retention) return;
    retire(context, [retained = retention.get()] { Release()(retained); });
    retention.release();
}

Status release_with_graph(Context& context, CUgraph graph, Retention retention, bool is_in_use,
                          CUuserObject& object) noexcept {
    Retained* const retained = retention.release();  // the driver's, which calls graph_is_gone
    Status status =
        context.observe(cu.cuUserObjectCreate(&object, retained, graph_is_gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    if (!status.ok()) {
        if (!is_in_use) Release()(retained);
        return status;
    }
    status = context.observe(cu.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    if (!status.ok() && !is_in_use) cu.cuUserObjectRelease(object, 1).ignore();
    return status;
}

bool put_off(std::function<void()> act) {
    if (!driver::host_function::is_here()) return false;
    Retention retention;
    retain(retention, Ref<Shared>::adopt(new PutOff(std::move(act))));
    return true;  // it is over now
}

bool is_over(Context& context, CUevent event) noexcept {
    if (event != nullptr && !context.is_reached(event)) return false;
    if (event != nullptr) context.release_event(event);
    return true;
}

Status wait_for(Context& context, CUevent event) noexcept {
    const RelaxedCapture relaxed;
    const Status status = context.observe(cu.cuEventSynchronize(event));
    context.release_event(event, status);
    return status;
}

bool is_ending() noexcept { return handover::is_releasing() || (sweep.ends() % 2 != 0 && !is_forked()); }

Status wait_for_end(const Limit& given) noexcept {
    const auto begin = limit::Clock::now();
    const auto until = limit::deadline(begin, given.seconds);
    while (is_ending()) {
        const auto now = limit::Clock::now();
        if (now >= until) return Reason::timed_out;
        if (given.is_interrupted != nullptr && given.is_interrupted()) return Reason::interrupted;
        limit::wait_a_little(now, std::min<limit::Clock::duration>(now - begin, limit::attention), true);
    }
    return {};
}

bool is_pending() noexcept { return pending.load() != 0; }

std::size_t waiting() noexcept { return waiting_queue.count(); }

void* pop_done() {
    if (!may_wait().ok()) return nullptr;
    for (;;) {
        const std::uint64_t looks = sweep.looks();
        Retained* found = objects.take();
        if (found == nullptr) found = references.take();
        if (found == nullptr) found = take_reached();
        if (found != nullptr) {
            void* const object = end(found);
            if (object == nullptr) continue;
            popped.fetch_add(1, std::memory_order_relaxed);
            return object;
        }
        if (looks % 2 == 0 && sweep.looks() == looks) return nullptr;
        sweep.wait_for_look();  // it may have had the last one in its hands
    }
}

}  // namespace ftcuda::core::deferred_release
