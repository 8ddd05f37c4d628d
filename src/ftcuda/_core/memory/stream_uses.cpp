#include "stream_uses.hpp"

#include "../../_driver/schedule.hpp"
#include "../../_driver/table.hpp"
#include "../device/deferred_errors.hpp"

#include <memory>
#include <thread>

namespace ftcuda::core {

namespace {

// A predicate for find_slot() that also counts the slots before the one that it finds.
template <class Predicate>
auto numbered(std::size_t& number, Predicate is_wanted) {
    number = 0;
    return [&number, is_wanted](const Use& use) {
        if (is_wanted(use)) return true;
        ++number;
        return false;
    };
}

}  // namespace

void StreamUses::clear() noexcept {
    for_each([](Use& use) {
        if (use.event != nullptr) use.stream->context().release_event(use.event);
        use.event = nullptr;
        use.stream->let_go();
        use.stream = nullptr;
    });
}

StreamUses::~StreamUses() {
    clear();
    Block* block = first_.next.load(std::memory_order_relaxed);
    while (block != nullptr) {
        const std::unique_ptr<Block> mine(block);
        block = mine->next.load(std::memory_order_relaxed);
    }
}

void StreamUses::begin(Stream& stream, std::uint64_t id) noexcept {
    Use& use = first_.uses.front();
    stream.keep();
    use.stream = &stream;
    use.stream_id.store(id, std::memory_order_relaxed);
}

std::size_t StreamUses::add(Stream& stream, std::uint64_t id) {
    FTCUDA_SCHEDULE_POINT("find a use");
    const auto has_id = [id](const Use& use) { return use.stream_id.load(std::memory_order_acquire) == id; };
    std::size_t number = 0;
    if (find_slot(numbered(number, has_id)) != nullptr) return number;
    Use& added = acquire_free(stream);
    find_slot(numbered(number, [&added](const Use& use) { return &use == &added; }));
    release(added, id);
    return number;
}

Use& StreamUses::acquire(Stream& stream, std::uint64_t id) {
    Use* const use = acquire_if(id);
    return use != nullptr ? *use : acquire_free(stream);
}

bool StreamUses::mark(Stream& stream, const char* noun) noexcept {
    const std::uint64_t id = stream.id();
    Use& use = acquire(stream, id);
    FTCUDA_SCHEDULE_POINT("record a use");
    const Status status = stream.mark(use.event);
    release(use, id);
    if (status.reason() == Reason::driver) deferred_errors::add(status, "mark", noun);
    return status.ok();
}

Use* StreamUses::acquire_if(std::uint64_t id) noexcept {
    FTCUDA_SCHEDULE_POINT("take a use");
    return find_slot([&](Use& use) { return take(use, id); });
}

Use& StreamUses::acquire_free(Stream& stream) {
    Use* use = acquire_if(0);
    if (use == nullptr) {
        // Before the list grows: a buffer that lives long must not keep every stream that ever used it.
        find_slot([&](Use& candidate) {
            forget_if_finished(candidate);
            return false;
        });
        while ((use = acquire_if(0)) == nullptr) grow();
    }
    stream.keep();
    use->stream = &stream;
    return *use;
}

void StreamUses::forget_if_finished(Use& use) noexcept {
    FTCUDA_SCHEDULE_POINT("forget a use");
    std::uint64_t id = use.stream_id.load(std::memory_order_relaxed);
    if (id == 0 || id == Use::taken) return;
    if (!take(use, id)) return;
    Context& context = use.stream->context();
    if (use.event != nullptr ? context.is_reached(use.event) : use.stream->is_finished()) {
        if (use.event != nullptr) context.release_event(use.event);
        use.event = nullptr;
        use.stream->let_go();
        use.stream = nullptr;
        id = 0;
    }
    release(use, id);
}

bool StreamUses::take(Use& use, std::uint64_t id) noexcept {
    if (!use.stream_id.compare_exchange_strong(id, Use::taken, std::memory_order_acq_rel, std::memory_order_relaxed))
        return false;
    driver::schedule::note_lock(1);
    return true;
}

void StreamUses::release(Use& use, std::uint64_t id) noexcept {
    use.stream_id.store(id, std::memory_order_release);
    driver::schedule::note_lock(-1);
#ifdef FTCUDA_SCHEDULE_POINTS
    driver::schedule::unpark(&use);
#endif
}

std::uint64_t StreamUses::wait_and_acquire(Use& use) noexcept {
    FTCUDA_SCHEDULE_POINT("visit a use");
    for (;;) {
        std::uint64_t id = use.stream_id.load(std::memory_order_relaxed);
        if (id == 0) return 0;
        if (id != Use::taken) {
            if (take(use, id)) return id;
            continue;
        }
#ifdef FTCUDA_SCHEDULE_POINTS
        if (driver::schedule::park(&use, "wait for a use")) continue;
#endif
        std::this_thread::yield();  // it is acquired for one or two driver calls that do not wait
    }
}

void StreamUses::grow() {
    FTCUDA_SCHEDULE_POINT("grow");
    Block* block = &first_;
    for (Block* next = block; next != nullptr; next = block->next.load(std::memory_order_acquire)) block = next;
    std::unique_ptr<Block> mine(new Block);
    Block* none = nullptr;
    if (block->next.compare_exchange_strong(none, mine.get(), std::memory_order_acq_rel, std::memory_order_relaxed))
        mine.release();
}

}  // namespace ftcuda::core
