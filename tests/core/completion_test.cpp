// Completions: told once, after the work, whoever arms, closes and asks meanwhile.
#include "../check.hpp"

#include "../../src/ftcuda/_core/completion/inbox.hpp"
#include "../../src/ftcuda/_core/completion/reactor.hpp"
#include "../../src/ftcuda/_core/completion/service.hpp"
#include "../../src/ftcuda/_core/memory/copy.hpp"
#include "../../src/ftcuda/_core/stream/event.hpp"
#include "../../src/ftcuda/_core/sync/limit.hpp"
#include "simulated.hpp"

#include <chrono>
#include <cstdlib>
#include <poll.h>
#include <thread>

namespace {

using namespace ftcuda;
using namespace ftcuda::core;
using Clock = std::chrono::steady_clock;

// Of one wait, kept by who waits.
class Told final : public Shared {
public:
    std::atomic<int> times{0};
    std::atomic<bool> well{false};

private:
    ~Told() override = default;
};

class Teller final : public Waiter {
public:
    explicit Teller(Ref<Told> told) : told_(std::move(told)) {}
    void over(Status status) noexcept override {
        told_->well.store(status.ok(), std::memory_order_relaxed);
        told_->times.fetch_add(1);
    }

private:
    const Ref<Told> told_;
};

template <class Predicate>
bool comes(Predicate is_there, std::chrono::seconds limit = std::chrono::seconds(60)) {
    const auto end = Clock::now() + limit;
    while (!is_there()) {
        if (Clock::now() > end) return false;
        std::this_thread::yield();
    }
    return true;
}

bool is_done(Awaited& awaited, Context& context) {
    const Ref<Told> told = Ref<Told>::adopt(new Told);
    if (!Reactor::only().begin(awaited, context, std::make_unique<Teller>(told)).ok()) return false;
    return comes([&] { return told->times.load() != 0; }) && told->times.load() == 1 && told->well.load();
}

// What the device writes is read by the host, without another order than the word's.
void results_are_there(Context& context, MemoryResource& pinned, bool by_event) {
    Ref<Stream> stream;
    CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
    if (by_event) CHECK(stream->share_cu_stream() != nullptr);
    Ref<Buffer> buffer;
    CHECK(Buffer::allocate(pinned, 64, stream.get(), buffer).ok());
    const auto* const bytes = reinterpret_cast<const unsigned char*>(buffer->pointer());
    for (unsigned value = 1; value <= 200; ++value) {
        CHECK(fill(*buffer, value % 256, 1, *stream, nullptr).ok());
        CHECK(is_done(*stream, context));
        CHECK(bytes[0] == value % 256 && bytes[63] == value % 256);
    }
    Buffer::ReleasedHolder released;
    CHECK(buffer->close(nullptr, false, false, released).ok());
    stream->close();
}

// Some await a stream and an event, others close them: each wait is told once, or refused because it came too late.
void closed_meanwhile(Context& context) {
    for (int round = 0; round < 200; ++round) {
        Ref<Stream> stream;
        Ref<Event> event;
        CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
        CHECK(Event::create(context, abi::CU_EVENT_DISABLE_TIMING, nullptr, event).ok());
        CHECK(stream->record(*event).ok());
        std::atomic<int> armed{0};
        std::vector<Ref<Told>> all;
        for (int index = 0; index < 8; ++index) all.push_back(Ref<Told>::adopt(new Told));
        std::vector<std::thread> threads;
        for (int index = 0; index < 2; ++index) {
            threads.emplace_back([&, index] {
                for (int turn = 0; turn < 4; ++turn) {
                    Awaited& awaited = turn % 2 == 0 ? static_cast<Awaited&>(*stream) : *event;
                    auto teller = std::make_unique<Teller>(all[static_cast<std::size_t>(4 * index + turn)]);
                    const Status status = Reactor::only().begin(awaited, context, std::move(teller));
                    CHECK(status.ok() || status.reason() == Reason::closed);
                    if (status.ok()) ++armed;
                }
            });
        }
        threads.emplace_back([&] {
            if (round % 2 == 0) stream->close();
            event->close();
            stream->close();
        });
        for (std::thread& thread : threads) thread.join();
        const auto told = [&] {
            int sum = 0;
            for (const Ref<Told>& each : all) sum += each->times.load();
            return sum;
        };
        CHECK(comes([&] { return told() == armed.load(); }));
        for (const Ref<Told>& each : all) CHECK(each->times.load() <= 1);
    }
}

// A loop sleeps on its eventfd, and is woken for all that comes.
void loops_are_woken(Context& context) {
    constexpr std::uint64_t waits = 500;
    std::vector<std::thread> threads;
    for (int index = 0; index < 3; ++index) {
        threads.emplace_back([&] {
            Ref<Inbox> inbox;
            Ref<Stream> stream;
            CHECK(Inbox::open(inbox) == 0);
            CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
            std::uint64_t begun = 0, over = 0, sum = 0;
            while (over < waits) {
                for (std::uint64_t count = begun % 7 + 1; count != 0 && begun < waits; --count) {
                    CHECK(Reactor::only().begin(*stream, context, std::make_unique<InboxWaiter>(inbox, ++begun)).ok());
                }
                pollfd ready{inbox->descriptor(), POLLIN, 0};
                if (::poll(&ready, 1, 60'000) != 1) break;
                for (const Inbox::Finished& each : inbox->take()) {
                    CHECK(each.status.ok());
                    sum += each.number;
                    ++over;
                }
            }
            CHECK(over == waits && sum == waits * (waits + 1) / 2);
            inbox->close();
            stream->close();
        });
    }
    for (std::thread& thread : threads) thread.join();
}

// Nothing is put into an inbox that is closed, and its eventfd stays until the last wait is over.
void loops_that_end_first(Context& context) {
    for (int round = 0; round < 200; ++round) {
        Ref<Inbox> inbox;
        Ref<Stream> stream;
        CHECK(Inbox::open(inbox) == 0);
        CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
        for (std::uint64_t number = 0; number < 4; ++number)
            CHECK(Reactor::only().begin(*stream, context, std::make_unique<InboxWaiter>(inbox, number)).ok());
        inbox->close();
        CHECK(inbox->take().empty());
        inbox = {};
        CHECK(is_done(*stream, context));
        stream->close();
    }
}

// Who has seen the end himself is not told of it.
void who_looks_is_not_told(Context& context) {
    Ref<Stream> stream;
    Ref<Event> done;  // was never recorded
    CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
    CHECK(Event::create(context, abi::CU_EVENT_DISABLE_TIMING, nullptr, done).ok());
    for (int round = 0; round < 200; ++round) {
        Awaited& awaited = round % 2 == 0 ? static_cast<Awaited&>(*stream) : *done;
        const Ref<Told> told = Ref<Told>::adopt(new Told);
        bool is_over = false;
        CHECK(Reactor::only().begin(awaited, context, std::make_unique<Teller>(told), is_over).ok());
        CHECK(is_over || round % 2 == 0);
        CHECK(is_over ? told->times.load() == 0 : comes([&] { return told->times.load() == 1; }));
    }
    done->close();
    stream->close();
}

// A service whose turns last until they may end.
class Slow final : public Service {
public:
    Slow() : Service(std::make_shared<ServiceThread>(), Pause(0)) {}
    std::atomic<int> turns{0};
    std::atomic<bool> may_end{false};

private:
    Pause turn() noexcept override {
        turns.fetch_add(1);
        while (!may_end.load()) std::this_thread::yield();
        return for_ever;
    }
};

// What is woken for during a turn is the next one's, though the thread does not sleep yet.
bool no_wake_up_is_lost() {
    Slow& service = *new Slow;  // never freed, as its thread
    service.start();
    service.wake();
    CHECK(comes([&] { return service.turns.load() == 1; }));
    service.wake();
    service.may_end.store(true);
    const bool is_kept = comes([&] { return service.turns.load() == 2; }, std::chrono::seconds(10));
    CHECK(is_kept);
    return is_kept;
}

// A word that is there counts first: that work was done before the context failed.
void words_count_before_failures(Context& context) {
    Ref<Stream> stream;
    CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
    Completion done(context, nullptr), pending(context, nullptr);
    CHECK(stream->arm(done).ok());
    CHECK(stream->synchronize({}).ok());
    context.observe(Status::from_driver(abi::CUDA_ERROR_ILLEGAL_ADDRESS, driver::Entry::cuStreamQuery)).ignore();
    CHECK(!context.usable().ok());
    CHECK(done.ask().ok());
    CHECK(!stream->arm(pending).ok());
}

}  // namespace

int main(int, char** arguments) {
    test::load_simulated(arguments[1]);
    Device* device = nullptr;
    Context* context = nullptr;
    CHECK(Device::get(0, device).ok() && device->context(context).ok());
    if (!no_wake_up_is_lost()) std::_Exit(test::report());  // all that follows would wait for minutes
    const Ref<MemoryResource> pinned = MemoryResource::plain(*context, MemoryKind::pinned);
    results_are_there(*context, *pinned, false);
    results_are_there(*context, *pinned, true);
    closed_meanwhile(*context);
    loops_are_woken(*context);
    loops_that_end_first(*context);
    who_looks_is_not_told(*context);
    CHECK(comes([] { return Reactor::only().pending() == 0; }));
    words_count_before_failures(*context);  // last: nothing can be done with the context any more
    const int result = test::report();
    std::fflush(nullptr);
    std::_Exit(result);  // streams' worker threads run for ever, as a driver's do
}
