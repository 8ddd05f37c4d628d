// Where batches are computed on a device, one at a time: a stream, memory for the rows of the largest batch, and what
// computes them there. That is a graph for each size, or a thread of the caller's, which submits to the stream.
#pragma once

#include "../graph/graph.hpp"
#include "../memory/buffer.hpp"
#include "../stream/stream.hpp"
#include "slab.hpp"

#include <optional>

namespace ftcuda::core::serving {

class DeviceLane final : public Shared {
public:
    // `inputs`, `outputs`: memory of the device, one buffer for each array, of which `in` and `out` say what a row has.
    // `graphs`: one for each size; none: a thread of the caller's computes.
    DeviceLane(Ref<Stream> stream, std::vector<Ref<Buffer>> inputs, std::vector<Ref<Buffer>> outputs, RowSizes in,
               RowSizes out, std::vector<Ref<Graph>> graphs)
        : stream_(std::move(stream)), inputs_(std::move(inputs)), outputs_(std::move(outputs)), in_(std::move(in)),
          out_(std::move(out)), graphs_(std::move(graphs)) {}

    // By the dispatcher, as an Engine's. `memory`: which the slab is in. `index`: of the size.
    void launch(Buffer& memory, Slab& slab, std::size_t index, std::size_t size) noexcept;
    Status ask(Ref<Shared>& cause) noexcept;
    // Its context has failed, and fails for ever.
    bool is_lost() const noexcept { return !stream_->context().usable().ok(); }
    // There are no batches any more.
    void end() noexcept;

    // By the thread that computes. Waits for a batch, whose rows are in the inputs: how many there are; 0 at the end.
    std::size_t take() noexcept;
    // The batch is submitted. `cause`: what the caller's code has raised; null if nothing.
    void computed(Ref<Shared> cause) noexcept;

private:
    using Word = std::uint32_t;
    static constexpr Word idle = 0, called = 1, submitted = 2, ended = 3;

    ~DeviceLane() override = default;
    // Calls `call()` unless something has failed before.
    template <class Call>
    void go_on(Call call) noexcept;
    Status copy_rows(Buffer& memory, const Rows& rows, bool to_device);
    // What follows when the batch is computed.
    void submit_rest() noexcept;
    void tell(Word word) noexcept;

    // Constant after construction.
    const Ref<Stream> stream_;
    const std::vector<Ref<Buffer>> inputs_, outputs_;
    const RowSizes in_, out_;
    const std::vector<Ref<Graph>> graphs_;

    // Whose turn it is: the dispatcher's, or, when `called`, the thread's that computes. Release by who ends its turn,
    // acquire by the other.
    std::atomic<Word> word_{idle};

    // Of whose turn it is.
    Buffer* memory_ = nullptr;
    Slab* slab_ = nullptr;
    std::size_t size_ = 0;
    Status status_;  // what has failed first
    Ref<Shared> cause_;
    std::optional<Completion> completion_;  // none: the stream is asked
    Completion::Time asked_{};              // when the driver was, or would have been, asked for the context
};

}  // namespace ftcuda::core::serving
