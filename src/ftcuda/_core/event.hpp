// An event: a point in a stream's work that can be waited for, asked about and timed.
#pragma once

#include "context.hpp"
#include "lifetime.hpp"

namespace ftcuda::core {

class Event final : public Shared {
public:
    static Status create(Context& context, unsigned flags, Ref<Event>& event);

    Context& context() const noexcept { return *context_; }
    abi::CUevent cu_event() const noexcept { return cu_event_; }
    unsigned flags() const noexcept { return flags_; }

    void close() noexcept {
        if (lifetime_.close()) destroy();
    }
    bool is_closed() const noexcept { return lifetime_.is_closing(); }

    bool enter() noexcept { return lifetime_.enter() == 0; }
    void leave() noexcept {
        if (Lifetime::last(lifetime_.leave())) destroy();
    }

    Status synchronize() noexcept;
    Status query(bool& done) noexcept;

    // Milliseconds from `start` to `end`, both recorded and reached.
    static Status elapsed(Event& start, Event& end, float& milliseconds) noexcept;

private:
    Event(Context& context, abi::CUevent cu_event, unsigned flags) noexcept
        : context_(&context), cu_event_(cu_event), flags_(flags) {}
    ~Event() override = default;

    void destroy() noexcept;

    // Constant after construction.
    Context* const context_;
    const abi::CUevent cu_event_;
    const unsigned flags_;

    // Synchronises itself.
    Lifetime lifetime_;
};

}  // namespace ftcuda::core
