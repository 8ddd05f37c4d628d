#include "uses.hpp"

#include <memory>

namespace ftcuda::core {

void Uses::clear() noexcept {
    for_each([](Use& use) {
        if (const abi::CUevent event = use.event.exchange(nullptr, std::memory_order_relaxed)) use.stream->context().give_event(event);
        use.stream->unkeep();
        use.stream = nullptr;
    });
}

Uses::~Uses() {
    clear();
    Block* block = first_.next.load(std::memory_order_relaxed);
    while (block != nullptr) {
        const std::unique_ptr<Block> mine(block);
        block = mine->next.load(std::memory_order_relaxed);
    }
}

Use& Uses::add(Stream& stream, std::uint64_t id) {
    for (Block* block = &first_;;) {
        for (Use& use : block->uses) {
            std::uint64_t seen = use.stream_id.load(std::memory_order_acquire);
            if (seen == id) return use;
            if (seen != 0) continue;
            if (use.stream_id.compare_exchange_strong(seen, id, std::memory_order_acq_rel, std::memory_order_acquire)) {
                stream.keep();
                use.stream = &stream;
                return use;
            }
            if (seen == id) return use;
        }
        Block* next = block->next.load(std::memory_order_acquire);
        if (next == nullptr) {
            std::unique_ptr<Block> mine(new Block);
            if (block->next.compare_exchange_strong(next, mine.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
                next = mine.release();
            }
        }
        block = next;
    }
}

}  // namespace ftcuda::core
