// The core on the simulated driver, raced by many threads with no interpreter involved: for the sanitizers.
#include "../check.hpp"

#include "../../src/ftcuda/_core/device/deferred_errors.hpp"
#include "../../src/ftcuda/_core/launch/bound_launch.hpp"
#include "../../src/ftcuda/_core/launch/launch.hpp"
#include "../../src/ftcuda/_core/memory/copy.hpp"
#include "../../src/ftcuda/_core/memory/staging.hpp"
#include "../../src/ftcuda/_core/stream/event.hpp"
#include "../../src/ftcuda/_core/completion/context_wait.hpp"
#include "../../src/ftcuda/_core/completion/deferred_release.hpp"
#include "../../src/ftcuda/_core/stream/section_holder.hpp"
#include "../../src/ftcuda/_core/sync/limit.hpp"
#include "simulated.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace ftcuda;
using namespace ftcuda::core;

Status close(Buffer& buffer) {
    Buffer::ReleasedHolder released;
    return buffer.close(nullptr, false, false, released);
}

constexpr const char* text = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry increment(.param .u64 p)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd0, [p];
    atom.global.add.u32 %r0, [%rd0], 1;
    ret;
}
)";

template <class Body>
void together(unsigned count, Body body) {
    std::atomic<unsigned> ready{0};
    std::vector<std::thread> threads;
    for (unsigned index = 0; index < count; ++index) {
        threads.emplace_back([&, index] {
            ++ready;
            while (ready.load() < count) std::this_thread::yield();
            body(index);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

bool done_or_closed(Status status) { return status.ok() || status.reason() == Reason::closed; }

Context* first_context(unsigned threads) {
    std::vector<Context*> seen(threads);
    together(threads, [&](unsigned index) {
        Device* device = nullptr;
        CHECK(Device::get(0, device).ok());
        CHECK(device->context(seen[index]).ok());
    });
    for (Context* context : seen) CHECK(context == seen[0]);
    return seen[0];
}

void race_streams(Context& context, Kernel& kernel, MemoryResource& memory) {
    const LaunchShape shape({1, 1, 1}, {1, 1, 1}, nullptr, 0, false, false);
    for (int round = 0; round < 40; ++round) {
        Ref<Stream> stream;
        Ref<Stream> other;
        CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
        CHECK(Stream::create(context, abi::CU_STREAM_DEFAULT, 0, other).ok());
        Ref<Buffer> buffer;
        CHECK(Buffer::allocate(memory, 64, stream.get(), buffer).ok());
        Ref<Event> event;
        CHECK(Event::create(context, abi::CU_EVENT_DISABLE_TIMING, nullptr, event).ok());
        CHECK(fill(*buffer, 0, 4, *stream, nullptr).ok());
        CHECK(other->wait(*stream).ok());
        together(6, [&](unsigned index) {
            std::uint64_t pointer = buffer->pointer();
            void* parameters[] = {&pointer};
            Buffer* const used[] = {buffer.get()};
            Arguments arguments;
            arguments.parameters = parameters;
            arguments.operands = {used, 1};
            bool answer = false;
            for (int turn = 0; turn < 8; ++turn) {
                switch (index) {
                case 0: CHECK(done_or_closed(launch(*stream, shape, kernel, arguments))); break;
                case 1: CHECK(done_or_closed(launch(*other, shape, kernel, arguments))); break;
                case 2:
                    CHECK(done_or_closed(stream->record(*event)));
                    CHECK(done_or_closed(other->wait(*event)));
                    break;
                case 3:
                    CHECK(done_or_closed(stream->query(answer)));
                    CHECK(done_or_closed(event->synchronize(Limit())));
                    break;
                case 4:
                    if (SectionHolder section(*stream); section.begin(0).ok()) CHECK(section.end());
                    if (turn == 6) event->close();
                    break;
                default:
                    if (turn == 4) CHECK(close(*buffer).ok());
                    if (turn == 6) stream->close();
                }
            }
        });
        stream->close();
        other->close();
        event->close();
        CHECK(close(*buffer).ok());
    }
}

// More streams at once than a block of uses has slots; nothing but the uses orders the threads.
void race_uses(Context& context) {
    constexpr unsigned users = 7;
    for (int round = 0; round < 60; ++round) {
        std::vector<Ref<Stream>> streams(users);
        for (Ref<Stream>& stream : streams) CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
        StreamUses uses;
        uses.begin(*streams[0], streams[0]->id());
        together(users, [&](unsigned index) {
            Stream& mine = *streams[index];
            const Submission submission(mine);
            CHECK(submission.status().ok());
            uses.add(mine, mine.id());
            unsigned found = 0;
            uses.visit([&](const Use& use, std::uint64_t) { found += use.stream == &mine ? 1 : 0; });
            CHECK(found >= 1);  // twice if another thread had its slot while it was looked for
        });
        uses.clear();
        for (Ref<Stream>& stream : streams) stream->close();
    }
}

void race_exclusive(Context& context) {
    Ref<Stream> stream;
    CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
    std::atomic<int> inside{0};
    together(4, [&](unsigned) {
        for (int turn = 0; turn < 50; ++turn) {
            SectionHolder section(*stream);
            CHECK(section.begin(0).ok());
            CHECK(inside.fetch_add(1) == 0);
            const Submission mine(*stream);
            CHECK(mine.status().ok());
            CHECK(inside.fetch_sub(1) == 1);
            CHECK(section.end());
        }
    });
    stream->close();
}

// Threads that end in their section, and sections that another thread ends.
void race_abandoned(Context& context) {
    Ref<Stream> stream;
    CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
    std::atomic<int> inside{0};
    std::atomic<int> lost{0};
    std::atomic<int> told{0};
    for (int round = 0; round < 20; ++round) {
        std::vector<std::unique_ptr<SectionHolder>> left(2);  // until after the threads are gone
        together(4, [&](unsigned index) {
            for (int turn = 0; turn < 6; ++turn) {
                auto section = std::make_unique<SectionHolder>(*stream);
                const Status status = section->begin(0);
                if (status.reason() == Reason::abandoned) {
                    ++told;
                    continue;
                }
                CHECK(status.ok());
                CHECK(inside.fetch_add(1) == 0);
                {
                    const Submission mine(*stream);
                    CHECK(mine.status().ok());
                }
                CHECK(inside.fetch_sub(1) == 1);
                if (index < 2 && turn == 5) {
                    ++lost;
                    left[index] = std::move(section);
                } else if (index == 2) {
                    SectionHolder* const handed = section.get();
                    std::thread([handed] { CHECK(handed->end()); }).join();
                } else {
                    CHECK(section->end());
                }
            }
        });
        // The last one may have died after everybody else was done.
        const Submission next(*stream);
        if (next.status().reason() == Reason::abandoned) ++told;
    }
    CHECK(told == lost && lost >= 20);
    stream->close();
}

void race_views(Context& context) {
    const Ref<MemoryResource> memory = MemoryResource::plain(context, MemoryKind::pinned);
    for (int round = 0; round < 100; ++round) {
        Ref<Buffer> buffer;
        CHECK(Buffer::allocate(*memory, 16, nullptr, buffer).ok());
        together(3, [&](unsigned index) {
            if (index == 0) {
                CHECK(close(*buffer).ok());
            } else if (buffer->enter()) {
                *reinterpret_cast<volatile char*>(buffer->pointer() + index) = 1;  // faults if it was freed
                buffer->leave();
            }
        });
    }
}

// Idle events, retired pools and deferred errors, each from all threads at once.
void race_housekeeping(Context& context, const FtcudaSimControl& control) {
    constexpr unsigned threads = 4;
    constexpr int turns = 30;
    std::vector<Ref<Stream>> streams(threads);
    for (Ref<Stream>& stream : streams) CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
    std::vector<std::uint64_t> faults;
    for (unsigned refused = 0; refused < threads * turns / 2; ++refused) {
        const FtcudaSimFault fault{"cuStreamDestroy_v2", 1, 0, FTCUDA_SIM_FAIL, abi::CUDA_ERROR_UNKNOWN};
        faults.push_back(control.add_fault(&fault));
    }
    std::atomic<int> told{0};
    together(threads, [&](unsigned index) {
        for (int turn = 0; turn < turns; ++turn) {
            CHECK(streams[index]->wait(*streams[(index + 1) % threads]).ok());
            Ref<MemoryResource> pool;
            CHECK(MemoryResource::make_pool(context, MemoryKind::device, 0, pool).ok());
            pool->close();
            Ref<Stream> passing;
            CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, passing).ok());
            passing->close();  // half of them are refused, which are deferred errors
            deferred_errors::DeferredError error;
            while (deferred_errors::pop(error)) ++told;
        }
    });
    for (const std::uint64_t fault : faults) control.release_fault(fault);
    deferred_errors::DeferredError error;
    while (deferred_errors::pop(error)) ++told;
    CHECK(told.load() == static_cast<int>(faults.size()));
    for (const Ref<Stream>& stream : streams) stream->close();
    CHECK(synchronize(context).ok());
}

// Exports of a buffer while others use and close it: each waits for the buffer's work or finds it closed.
void race_exports(Context& context, MemoryResource& memory) {
    for (int round = 0; round < 60; ++round) {
        std::vector<Ref<Stream>> streams(6);
        for (Ref<Stream>& stream : streams) CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
        Ref<Buffer> buffer;
        CHECK(Buffer::allocate(memory, 64, streams[0].get(), buffer).ok());
        std::vector<Ref<Buffer>> targets(2);
        for (Ref<Buffer>& target : targets) CHECK(Buffer::allocate(memory, 64, streams[0].get(), target).ok());
        for (unsigned index = 1; index < 6; ++index) CHECK(streams[index]->wait(*streams[0]).ok());
        const Ref<Account> account = Ref<Account>::adopt(new Account(1000));
        together(6, [&](unsigned index) {
            for (int turn = 0; turn < 4; ++turn) {
                switch (index) {
                case 0: CHECK(done_or_closed(buffer->order_before(*streams[5]))); break;
                case 1: CHECK(done_or_closed(buffer->order_before(*streams[4]))); break;
                case 2:
                    CHECK(account->charge(64));
                    account->confirm(64);
                    if (!buffer->charge_to(*account).ok()) account->credit(64);
                    break;
                case 5:
                    if (turn == 3) CHECK(close(*buffer).ok());
                    break;
                default: {  // reads it: two streams that wrote it would race on the device
                    Stream& mine = *streams[index - 2];
                    const Place target{targets[index - 3]->pointer(), targets[index - 3].get()};
                    CHECK(done_or_closed(copy(target, {buffer->pointer(), buffer.get()}, 64, mine, nullptr)));
                }
                }
            }
        });
        CHECK(close(*buffer).ok());
        for (const Ref<Buffer>& target : targets) CHECK(close(*target).ok());
        for (const Ref<Stream>& stream : streams) stream->close();
        const Account::Figures figures = account->figures();
        CHECK(figures.current_bytes == 0 && figures.current_count == 0 && figures.total_count == 4);
    }
}

// Copies of pageable memory, which share the staging chunks, objects that are kept until they are done, and one
// account.
void race_copies(Context& context, MemoryResource& memory) {
    std::atomic<int> released{0};
    const Ref<Account> account = Ref<Account>::adopt(new Account(4 * 4096));
    together(4, [&](unsigned index) {
        Ref<Stream> stream;
        CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
        Ref<Buffer> buffer;
        CHECK(Buffer::allocate(memory, 4096, stream.get(), buffer).ok());
        const Place place{buffer->pointer(), buffer.get()};
        std::vector<unsigned char> host(4096), back(4096);
        for (int turn = 0; turn < 50; ++turn) {
            std::fill(host.begin(), host.end(), static_cast<unsigned char>(index * 50 + turn));
            deferred_release::Retention retention = deferred_release::retain(&released);
            CHECK(upload(place, host.data(), host.size(), *stream, &retention).ok());
            CHECK(account->charge(4096));
            account->confirm(4096);
            account->credit(4096);
            CHECK(download(back.data(), place, back.size(), *stream, nullptr).ok());
            CHECK(back == host);
            while (deferred_release::pop_done() != nullptr) ++released;
            if (turn % 10 == 0) CHECK(Staging::of(context).trim().ok());
        }
        CHECK(close(*buffer).ok());
        stream->close();
    });
    CHECK(synchronize(context).ok());
    CHECK(Staging::of(context).trim().ok());
    while (deferred_release::pop_done() != nullptr) ++released;
    CHECK(released.load() == 4 * 50 && !deferred_release::is_pending());
    CHECK(account->figures().current_bytes == 0 && account->figures().total_count == 4 * 50);
}

// One bound launch in a stream of each thread, two of which set its buffer.
void race_bound_launch(Context& context, Kernel& kernel, MemoryResource& memory) {
    const LaunchShape shape({1, 1, 1}, {1, 1, 1}, nullptr, 0, false, false);
    std::array<Ref<Buffer>, 2> buffers;
    int owner = 0;
    std::atomic<int> made{0};
    const auto bound_to = [&](Buffer& buffer) {
        ++made;
        Argument argument;
        argument.buffer = &buffer;
        return BoundArgument(
            argument, Ref<deferred_release::ForeignReference>::adopt(new deferred_release::ForeignReference(&owner)));
    };
    for (Ref<Buffer>& buffer : buffers) {
        CHECK(Buffer::allocate(memory, 16, nullptr, buffer).ok());
    }
    std::uint64_t pointer = buffers[0]->pointer();
    Ref<BoundArguments> arguments = Ref<BoundArguments>::adopt(new BoundArguments(kernel.arguments()));
    arguments->put(0, reinterpret_cast<const char*>(&pointer), bound_to(*buffers[0]));
    Ref<BoundLaunch> bound = Ref<BoundLaunch>::adopt(new BoundLaunch(kernel, shape, std::move(arguments)));
    together(4, [&](unsigned index) {
        Ref<Stream> stream;
        CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, stream).ok());
        for (int turn = 0; turn < 60; ++turn) {
            if (index < 2) {
                Buffer& mine = *buffers[index];
                const std::uint64_t address = mine.pointer();
                bound->set(0, reinterpret_cast<const char*>(&address), bound_to(mine));
            }
            Ref<BoundArguments> used;
            CHECK(bound->launch(*stream, used).ok());
            CHECK(bound->arguments()->value(0) == &owner);
        }
        CHECK(stream->synchronize(Limit()).ok());
        stream->close();
    });
    bound = Ref<BoundLaunch>();
    for (Ref<Buffer>& buffer : buffers) CHECK(close(*buffer).ok());
    int released = 0;
    while (deferred_release::pop_done() != nullptr) ++released;
    CHECK(released == made.load() && !deferred_release::is_pending());
}

// One cache, from which all threads allocate in streams of their own and in one that they share.
void race_cache(Context& context, MemoryResource& upstream) {
    Ref<MemoryResource> cache;
    CHECK(MemoryResource::cached(upstream, 4096, cache).ok());
    Ref<Stream> shared;
    CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, shared).ok());
    together(4, [&](unsigned index) {
        for (int turn = 0; turn < 40; ++turn) {
            Ref<Stream> own;
            CHECK(Stream::create(context, abi::CU_STREAM_NON_BLOCKING, 0, own).ok());
            std::array<Ref<Buffer>, 3> buffers;
            for (Ref<Buffer>& buffer : buffers) {
                Stream& stream = turn % 3 == 0 ? *own : *shared;
                CHECK(Buffer::allocate(*cache, 100 * (index + 1), &stream, buffer).ok());
                CHECK(fill(*buffer, index, 4, stream, nullptr).ok());
            }
            for (const Ref<Buffer>& buffer : buffers) CHECK(close(*buffer).ok());
            if (turn % 8 == 0) CHECK(cache->trim(1024).ok());
            CHECK(cache->cache_figures().misses > 0);
            own->close();
        }
    });
    const Cache::Figures figures = cache->cache_figures();
    CHECK(figures.in_use_count == 0 && figures.in_use_bytes == 0);
    CHECK(figures.hits + figures.misses == 4 * 40 * 3);
    cache->close();
    CHECK(cache->cache_figures().cached_count == 0);
    shared->close();
}

}  // namespace

int main(int, char** arguments) {
    together(8, [&](unsigned) { test::load_simulated(arguments[1]); });
    CHECK(driver::loaded() && driver::loaded_driver().simulated);

    Context& context = *first_context(8);
    const Ref<Module> module = Module::make(text, "");
    std::vector<Ref<Kernel>> kernels(8);
    together(8, [&](unsigned index) {
        std::string log;
        CHECK(Kernel::get(*module, "increment", context, kernels[index], log).ok());
    });
    CHECK(kernels[0]->layout().parameters.size() == 1);
    Ref<MemoryResource> pool;
    CHECK(MemoryResource::default_pool(context, pool).ok());
    const Ref<MemoryResource> plain = MemoryResource::plain(context, MemoryKind::device);
    race_streams(context, *kernels[0], *pool);
    race_streams(context, *kernels[0], *plain);
    race_uses(context);
    race_exclusive(context);
    race_abandoned(context);
    race_views(context);
    race_exports(context, *pool);
    race_exports(context, *plain);
    race_copies(context, *pool);
    race_bound_launch(context, *kernels[0], *plain);
    race_cache(context, *pool);
    race_cache(context, *plain);
    race_cache(context, *MemoryResource::plain(context, MemoryKind::pinned));
    const FtcudaSimControl* const control = &test::control_of(arguments[1]);
    race_housekeeping(context, *control);
    CHECK(synchronize(context).ok());
    CHECK(!deferred_errors::any());

    char violation[256] = "";
    control->violation_text(0, violation, sizeof violation);
    if (control->violation_count() != 0) std::fprintf(stderr, "violation: %s\n", violation);
    CHECK(control->violation_count() == 0);
    CHECK(control->live(FTCUDA_SIM_DEVICE_ALLOCATION) == 0);
    CHECK(control->live(FTCUDA_SIM_PINNED_ALLOCATION) == 0);
    CHECK(control->live(FTCUDA_SIM_STREAM) <=
          61);  // the housekeeping stream, and those that the driver refused to destroy
    const int result = test::report();
    std::fflush(nullptr);
    std::_Exit(result);  // streams' worker threads run for ever, as a driver's do
}
