#include "background.hpp"

#include "library.hpp"

#include <atomic>

namespace ftcuda::driver::background {

namespace {

using Question = int (*)();

// Published once with release, when the driver is loaded; read with acquire.
std::atomic<Question> question{nullptr};

}  // namespace

void find(const Library& library) {
    question.store(reinterpret_cast<Question>(library.symbol("ftcuda_background_may_go_on")),
                   std::memory_order_release);
}

bool may_go_on() noexcept {
    const Question found = question.load(std::memory_order_acquire);
    return found == nullptr || found() != 0;
}

}  // namespace ftcuda::driver::background
