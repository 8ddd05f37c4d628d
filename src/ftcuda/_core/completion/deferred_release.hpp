// What must live until work is done: objects of the caller's, such as producers of arrays and memory of its own
// allocators, and references of the core's. The core knows an object of the caller's as an address; whoever takes one
// back lets it go.
//
// Callers take back what is over, in later calls. A service (service.hpp) comes after them, ten milliseconds later: it
// lets go of the core's references, and where nobody takes the callers' objects back it asks for that (handover.hpp).
#pragma once

#include "../device/context.hpp"
#include "../sync/ref.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace ftcuda::core {

struct Limit;

}  // namespace ftcuda::core

namespace ftcuda::core::deferred_release {

// Records `event`, one of the context's, behind work, or says why it cannot be: as Stream::mark().
using Mark = std::function<Status(abi::CUevent& event)>;

// What is retained by one submission. Made before the work is submitted, so that nothing can fail after that.
struct Retained {
    explicit Retained(void* of_caller) noexcept : object(of_caller) {}
    Retained(const Retained&) = delete;
    Retained& operator=(const Retained&) = delete;

    void* const object;                // null: only references
    std::vector<Ref<Shared>> further;  // released with it

    // While it is in a queue, which then owns it.
    Retained* next = nullptr;
    Context* context = nullptr;    // of the event
    abi::CUevent event = nullptr;  // null: nothing to wait for
    Mark mark;                     // of work that nothing marks yet; else null
};

// Where nothing else is said, a retained object is over: pop_done() or the service comes to it.
struct Release {
    void operator()(Retained* retained) const noexcept;
};
using Retention = std::unique_ptr<Retained, Release>;

inline Retention retain(void* object) { return Retention(new Retained(object)); }
inline void retain(Retention& retention, void* object) { retention = retain(object); }
inline void retain(Retention& retention, Ref<Shared> further) {
    if (!retention) retention = retain(nullptr);
    retention->further.push_back(std::move(further));
}

// In a function that a stream waits for, which ends nothing that needs the driver (sync/may_wait.hpp): true, and `act`
// is run later, by pop_done() or the service. False elsewhere.
bool put_off(std::function<void()> act);

// Until `event` is reached; takes the event over. A null event is reached. If a capture had the event: until the next
// synchronize() of the context.
void release_after(Context& context, abi::CUevent event, Retention retention) noexcept;

// Until the work is done that `mark` marks, which answers `capturing` for some time: others capture the stream.
void release_after_capture(Context& context, Mark mark, Retention retention) noexcept;
// Runs `act` then, as put_off().
void act_after_capture(Context& context, Mark mark, std::function<void()> act);

// Until the next synchronize() of the context (context_wait.hpp).
void release_when_idle(Context& context, Retention retention);

// For as long as `graph`, what it is instantiated as, and their work. By who captures it. `is_in_use`: the graph uses
// it already, so that it is kept for ever if the driver fails. `object`: the graph's, until it is taken back.
Status release_with_graph(Context& context, abi::CUgraph graph, Retention retention, bool is_in_use,
                          abi::CUuserObject& object) noexcept;

// Ways to come after an event, which the context gets back: true if it is reached, or else the event stays the
// caller's; waited for by the caller.
bool is_over(Context& context, abi::CUevent event) noexcept;
Status wait_for(Context& context, abi::CUevent event) noexcept;

// Whether a thread of ours, the service or that of the handover, lets go of something just now, which may be the last
// that keeps memory from its resource; until it has. The limit is of real time, though a test may hold the device's.
bool is_ending() noexcept;
Status wait_for_end(const Limit& limit) noexcept;

// True if something is retained. Cheap enough for every call that is not a launch.
bool is_pending() noexcept;

// An object whose work is done, the caller's from now on; null when there is none.
void* pop_done();

// How many are retained whose work is not known to be done.
std::size_t waiting() noexcept;

// An object of the caller's with a count of the core's: who lets go last passes it to pop_done().
class ForeignReference final : public Shared {
public:
    explicit ForeignReference(void* object) : retention_(deferred_release::retain(object)) {}
    void* object() const noexcept { return retention_->object; }

private:
    ~ForeignReference() override = default;

    const Retention retention_;
};

}  // namespace ftcuda::core::deferred_release
