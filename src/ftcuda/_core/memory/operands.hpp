// What a submission uses beside its stream and its kernel: buffers, and memory that is not ours. Used by launches,
// copies and fills.
//
// The submission owns it until its end. Then it is the stream's: each buffer knows the stream (stream_uses.hpp), and
// what holds memory that is not ours is retained until the work is done (deferred_release.hpp). Or, where the stream is
// captured, the graph's that comes of it.
#pragma once

#include "../completion/deferred_release.hpp"
#include "buffer.hpp"

namespace ftcuda::core {

// On the stack of whoever submits.
struct Operands {
    Buffer* const* buffers = nullptr;  // in any order, repeated if used more than once
    std::size_t count = 0;
    deferred_release::Retention* foreign = nullptr;  // what holds memory that is not ours, and is taken; may be null
};

// Leases on the buffers, all of them or none, for one scope; the caller is inside the stream for longer. In line: what
// it counts stays in registers.
class OperandLeases {
public:
    [[gnu::always_inline]] OperandLeases(Stream& stream, const Operands& operands) noexcept
        : stream_(stream), operands_(operands), buffers_(operands.buffers) {
        for (const std::size_t count = operands.count; entered_ < count; ++entered_) {
            status_ = buffers_[entered_]->begin_use(stream_);
            if (!status_.ok()) return;
        }
    }
    [[gnu::always_inline]] ~OperandLeases() {
        while (entered_ != 0) buffers_[--entered_]->end_use(stream_);
    }
    OperandLeases(const OperandLeases&) = delete;
    OperandLeases& operator=(const OperandLeases&) = delete;

    Status status() const noexcept { return status_; }

    // What `work`, a call of the driver, returns. With the context current. What was not ours is retained whatever it
    // returns: a call that failed may have begun. `code`: a kernel, which only a graph has to retain; else it lives
    // until its device is idle.
    template <class Work>
    [[gnu::always_inline]] Status submit(Work work, Shared* code = nullptr) {
        bool given = false;
        if (stream_.may_be_captured()) {
            const Status status = give_to_graph(stream_, operands_, code, false, given);
            if (given) entered_ = 0;
            if (!status.ok()) return status;
        }
        return given ? stream_.context().observe(work()) : submit_uncaptured(work, code);
    }

    // The same, if the caller knows that the stream was not captured. Others may have begun that meanwhile.
    template <class Work>
    [[gnu::always_inline]] Status submit_uncaptured(Work work, Shared* code = nullptr) {
        Status status = stream_.context().observe(work());
        if (stream_.may_be_captured()) {
            bool given = false;
            const Status late = give_late(stream_, operands_, code, given);
            if (given) entered_ = 0;
            if (status.ok()) status = late;
        }
        if (operands_.foreign != nullptr) stream_.retain_until_done(std::move(*operands_.foreign));
        return status;
    }

private:
    // If the stream is captured; `given`: the leases are the graph's. `is_submitted`: the graph has the work already.
    static Status give_to_graph(Stream& stream, const Operands& operands, Shared* code, bool is_submitted, bool& given);
    // The same, once it has.
    [[gnu::noinline]] static Status give_late(Stream& stream, const Operands& operands, Shared* code, bool& given);

    Stream& stream_;
    const Operands& operands_;
    Buffer* const* const buffers_;
    std::size_t entered_ = 0;
    Status status_;
};

}  // namespace ftcuda::core
