// Threads that only submit through the core, and never ask what is over: what they retained is let go of, and no queue
// grows. For as many seconds as the second argument says, or one.
#include "../check.hpp"

#include "../../src/ftcuda/_core/completion/context_wait.hpp"
#include "../../src/ftcuda/_core/completion/deferred_release.hpp"
#include "../../src/ftcuda/_core/completion/handover.hpp"
#include "../../src/ftcuda/_core/memory/copy.hpp"
#include "../../src/ftcuda/_core/sync/limit.hpp"
#include "simulated.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

using namespace ftcuda;
using namespace ftcuda::core;
using Clock = std::chrono::steady_clock;

std::atomic<std::size_t> made{0};
std::atomic<std::size_t> gone{0};

class Counted final : public Shared {
public:
    Counted() noexcept { ++made; }

private:
    ~Counted() override { ++gone; }
};

template <class Predicate>
bool comes(Predicate is_there) {
    const auto end = Clock::now() + std::chrono::seconds(60);
    while (!is_there()) {
        if (Clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

// Copies, each of which retains a reference of the core's.
template <class IsEnough, class Look>
void submit(IsEnough is_enough, Context& context, MemoryResource& memory, Look look) {
    Ref<Stream> stream;
    CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
    Ref<Buffer> source, target;
    CHECK(Buffer::allocate(memory, 64, stream.get(), source).ok());
    CHECK(Buffer::allocate(memory, 64, stream.get(), target).ok());
    for (unsigned turn = 0; !is_enough(turn); ++turn) {
        deferred_release::Retention retention;
        deferred_release::retain(retention, Ref<Shared>::adopt(new Counted));
        CHECK(copy({target->pointer(), target.get()}, {source->pointer(), source.get()}, 64, *stream, &retention).ok());
        if (turn % 64 == 0) CHECK(stream->synchronize(Limit()).ok());
        look();
    }
    CHECK(stream->synchronize(Limit()).ok());
    Buffer::ReleasedHolder released;
    CHECK(source->close(nullptr, false, false, released).ok());
    CHECK(target->close(nullptr, false, false, released).ok());
    stream->close();
}

// The largest number that was retained at once.
std::size_t submit_until(Clock::time_point end, Context& context, MemoryResource& memory) {
    std::size_t most = 0;
    submit([&](unsigned) { return Clock::now() >= end; }, context, memory,
           [&] { most = std::max(most, made.load() - gone.load()); });
    return most;
}

void submit_only(Context& context, MemoryResource& memory, double seconds) {
    const auto begin = Clock::now();
    const auto span = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::size_t first = 0, second = 0;
    std::thread other([&] { submit_until(begin + span, context, memory); });
    first = submit_until(begin + span / 2, context, memory);
    second = submit_until(begin + span, context, memory);
    other.join();
    CHECK(made.load() > 100);
    std::printf("%zu retained; at most %zu at once, then %zu\n", made.load(), first, second);
    CHECK(second < 20'000);
    CHECK(comes([] { return gone.load() == made.load() && !deferred_release::is_pending(); }));
}

// Where the service gets no time, as in a session of the scheduler, who submits keeps the queue short.
void stays_short(Context& context, MemoryResource& memory, const FtcudaSimControl& control) {
    CHECK(control.schedule_begin(0, 0, 1, 1) != 0);
    std::size_t most = 0;
    std::thread only([&] {
        control.schedule_enter(0);
        submit([](unsigned turn) { return turn == 500; }, context, memory,
               [&] { most = std::max(most, deferred_release::waiting()); });
        control.schedule_leave();
    });
    CHECK(control.schedule_wait(60'000) == FTCUDA_SIM_FINISHED);
    only.join();
    CHECK(most >= 64 && most < 200);
    CHECK(comes([] { return gone.load() == made.load(); }));
}

// An object of the caller's stays until somebody takes it back.
void objects_stay() {
    int object = 0;
    deferred_release::retain(&object).reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // some turns
    CHECK(deferred_release::is_pending());
    CHECK(deferred_release::pop_done() == &object);
    CHECK(deferred_release::pop_done() == nullptr && !deferred_release::is_pending());
}

class Held final : public Shared {
public:
    explicit Held(std::atomic<bool>& released) noexcept : released_(released) {}

private:
    ~Held() override {
        while (!released_) std::this_thread::yield();
    }

    std::atomic<bool>& released_;
};

// Who waits is back once the service has let go of what it took, or at the limit.
void ends_are_waited_for() {
    std::atomic<bool> released{false}, over{false};
    deferred_release::Retention retention;
    deferred_release::retain(retention, Ref<Shared>::adopt(new Held(released)));
    retention.reset();
    CHECK(comes([] { return deferred_release::is_ending(); }));
    CHECK(deferred_release::pop_done() == nullptr);  // it waits for nothing
    CHECK(deferred_release::wait_for_end(Limit{0.02, nullptr}).reason() == Reason::timed_out);
    CHECK(deferred_release::wait_for_end(Limit{60, [] { return true; }}).reason() == Reason::interrupted);
    std::thread waiting([&] {
        CHECK(deferred_release::wait_for_end(Limit()).ok());
        CHECK(released);
        over = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(!over);
    released = true;
    waiting.join();
    CHECK(comes([] { return !deferred_release::is_ending(); }));
    CHECK(deferred_release::wait_for_end(Limit{0, nullptr}).ok());
}

// The same of the thread that makes handed-over calls, here this one.
void releases_are_waited_for() {
    handover::ask_for_release();
    CHECK(handover::take() == nullptr);
    CHECK(deferred_release::is_ending());
    CHECK(deferred_release::wait_for_end(Limit{0.02, nullptr}).reason() == Reason::timed_out);
    handover::end_release();
    CHECK(deferred_release::wait_for_end(Limit{60, nullptr}).ok() && !handover::is_releasing());
}

// Who asks after the work is done finds what it retained, though the service may be looking at it.
void callers_find_it(Context& context, MemoryResource& memory) {
    int object = 0;
    unsigned found = 0, turns = 0;
    Ref<Stream> stream;
    CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
    Ref<Buffer> buffer;
    CHECK(Buffer::allocate(memory, 64, stream.get(), buffer).ok());
    for (const auto end = Clock::now() + std::chrono::seconds(2); Clock::now() < end; ++turns) {
        deferred_release::Retention retention = deferred_release::retain(&object);
        CHECK(fill(*buffer, 0, 1, *stream, &retention).ok());
        CHECK(stream->synchronize(Limit()).ok());
        found += deferred_release::pop_done() == &object ? 1 : 0;
    }
    CHECK(found == turns && !deferred_release::is_pending());
    Buffer::ReleasedHolder released;
    CHECK(buffer->close(nullptr, false, false, released).ok());
    stream->close();
}

void waits_end(Context& context) {
    for (int turn = 0; turn < 20; ++turn) CHECK(synchronize(context, Limit{1.0, nullptr}).ok());
}

}  // namespace

int main(int count, char** arguments) {
    test::load_simulated(arguments[1]);
    Device* device = nullptr;
    Context* context = nullptr;
    CHECK(Device::get(0, device).ok() && device->context(context).ok());
    const Ref<MemoryResource> memory = MemoryResource::plain(*context, MemoryKind::device);
    stays_short(*context, *memory, test::control_of(arguments[1]));
    submit_only(*context, *memory, count > 2 ? std::atof(arguments[2]) : 1.0);
    objects_stay();
    ends_are_waited_for();
    releases_are_waited_for();
    callers_find_it(*context, *memory);
    waits_end(*context);
    const int result = test::report();
    std::fflush(nullptr);
    std::_Exit(result);  // streams' worker threads run for ever, as a driver's do
}
