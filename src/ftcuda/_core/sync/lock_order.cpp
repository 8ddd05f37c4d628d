#include "lock_order.hpp"

#include "../../_driver/table.hpp"
#include "fork.hpp"

#ifdef FTCUDA_DEBUG_LOCKS

#include <array>
#include <cstdio>
#include <cstdlib>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#include <unistd.h>
#endif

namespace ftcuda::core::lock_order {

namespace {

constexpr std::array names = {
#define RANK(name, held) #name,
#include "ranks.def"
#undef RANK
};

enum class During { alone, calls };
constexpr std::array during = {
#define RANK(name, held) During::held,
#include "ranks.def"
#undef RANK
};

// Where a lock was taken.
struct Stack {
    std::array<void*, 24> frames;
    int size = 0;

    void capture() noexcept {
#if __has_include(<execinfo.h>)
        size = backtrace(frames.data(), static_cast<int>(frames.size()));
#endif
    }
    void print() const noexcept {
#if __has_include(<execinfo.h>)
        backtrace_symbols_fd(frames.data(), size, STDERR_FILENO);
#endif
    }
};

// What this thread holds, by rank: never two of one rank.
struct Held {
    const Mutex* mutex = nullptr;
    Stack stack;
};
thread_local std::array<Held, names.size()> held;

[[noreturn]] void fail(const char* problem, Rank rank, const Held* other) {
    std::fprintf(stderr, "ftcuda: lock order: '%s' %s", names[static_cast<std::size_t>(rank)], problem);
    if (other != nullptr) {
        std::fprintf(stderr, " '%s', which was locked at\n", names[static_cast<std::size_t>(other->mutex->rank())]);
        other->stack.print();
    }
    std::fprintf(stderr, "\nnow at\n");
    Stack here;
    here.capture();
    here.print();
    std::abort();
}

void check_call() noexcept {
    for (std::size_t rank = 0; rank < held.size(); ++rank) {
        if (held[rank].mutex != nullptr && during[rank] != During::calls)
            fail("held in a call of the driver, where it must not be", held[rank].mutex->rank(), nullptr);
    }
}

[[maybe_unused]] const bool watches_calls = (driver::before_call = &check_call, true);

}  // namespace

void check(Rank wanted) noexcept {
    if (is_forked()) fail("wanted in a forked child, where nobody may unlock it", wanted, nullptr);
    if (driver::host_function::is_here() && during[static_cast<std::size_t>(wanted)] == During::calls)
        fail("wanted in a host function, which somebody may wait for in a call of the driver", wanted, nullptr);
    for (std::size_t rank = static_cast<std::size_t>(wanted); rank < held.size(); ++rank) {
        if (held[rank].mutex != nullptr) fail("wanted while holding", wanted, &held[rank]);
    }
}

void remember(const Mutex& mutex) noexcept {
    Held& mine = held[static_cast<std::size_t>(mutex.rank())];
    mine.mutex = &mutex;
    mine.stack.capture();
}

void forget(const Mutex& mutex) noexcept {
    Held& mine = held[static_cast<std::size_t>(mutex.rank())];
    if (mine.mutex != &mutex) fail("unlocked by a thread that does not hold it", mutex.rank(), nullptr);
    mine.mutex = nullptr;
}

}  // namespace ftcuda::core::lock_order

#endif
