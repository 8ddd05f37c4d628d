#include "device_lane.hpp"

#include "../memory/copy.hpp"
#include "../sync/word.hpp"

#include <new>

namespace ftcuda::core::serving {

namespace {

constexpr std::chrono::microseconds longest_wait{1'000'000};
constexpr std::chrono::microseconds patience{1000};  // between two questions whether the context has failed
constexpr Status not_ready = Status::from_driver(abi::CUDA_ERROR_NOT_READY, Entry::none);

}  // namespace

template <class Call>
void DeviceLane::go_on(Call call) noexcept {
    if (!status_.ok()) return;
    try {
        status_ = call();
    } catch (const std::bad_alloc&) {
        status_ = Status::from_driver(abi::CUDA_ERROR_OUT_OF_MEMORY, Entry::none);
    }
}

void DeviceLane::launch(Buffer& memory, Slab& slab, std::size_t index, std::size_t size) noexcept {
    memory_ = &memory;
    slab_ = &slab;
    size_ = size;
    status_ = {};
    cause_ = {};
    go_on([&] { return copy_rows(memory, slab.inputs(), true); });
    if (graphs_.empty() && status_.ok()) {
        tell(called);
        return;
    }
    go_on([&] { return graphs_[index]->launch(*stream_); });
    submit_rest();
}

Status DeviceLane::copy_rows(Buffer& memory, const Rows& rows, bool to_device) {
    const std::vector<Ref<Buffer>>& buffers = to_device ? inputs_ : outputs_;
    const RowSizes& sizes = to_device ? in_ : out_;
    for (std::size_t each = 0; each < sizes.size(); ++each) {
        if (sizes[each] == 0) continue;
        const Place there{buffers[each]->pointer(), buffers[each].get()};
        const Place here{reinterpret_cast<std::uintptr_t>(rows.array(each)), &memory};
        const Status status =
            copy(to_device ? there : here, to_device ? here : there, size_ * sizes[each], *stream_, nullptr);
        if (!status.ok()) return status;
    }
    return {};
}

void DeviceLane::submit_rest() noexcept {
    go_on([this] { return copy_rows(*memory_, slab_->outputs(), false); });
    completion_.emplace(stream_->context(), nullptr);
    const Status armed = stream_->arm(*completion_);
    if (!armed.ok()) completion_.reset();
    else asked_ = completion_->armed();
    word_.store(submitted, std::memory_order_release);
}

Status DeviceLane::ask(Ref<Shared>& cause) noexcept {
    if (word_.load(std::memory_order_acquire) != submitted) return not_ready;
    Status status;
    if (completion_) {
        status = completion_->ask();
        const auto now = std::chrono::steady_clock::now();
        if (status.is(abi::CUDA_ERROR_NOT_READY) && now - asked_ >= patience) {
            asked_ = now;
            completion_->ask_for_context();
            status = completion_->ask();
        }
        if (status.is(abi::CUDA_ERROR_NOT_READY)) return status;
        completion_->finish(status);
        completion_.reset();
    } else {
        bool is_done = false;
        status = stream_->query(is_done);
        if (status.ok() && !is_done) return not_ready;
    }
    word_.store(idle, std::memory_order_relaxed);
    cause = std::move(cause_);
    return status_.ok() ? status : status_;
}

void DeviceLane::tell(Word word) noexcept {
    word_.store(word, std::memory_order_release);
    word::wake(word_);
}

void DeviceLane::end() noexcept { tell(ended); }

std::size_t DeviceLane::take() noexcept {
    for (;;) {
        const Word word = word_.load(std::memory_order_acquire);
        if (word == called) return size_;
        if (word == ended) return 0;
        word::wait(word_, word, longest_wait);
    }
}

void DeviceLane::computed(Ref<Shared> cause) noexcept {
    if (cause) {
        status_ = Reason::raised;
        cause_ = std::move(cause);
    }
    submit_rest();
}

}  // namespace ftcuda::core::serving
