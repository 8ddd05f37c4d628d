// Leases under fire: many threads enter, leave and close one word; exactly one of them destroys, after everybody left.
#include "../check.hpp"

#include "../../src/ftcuda/_core/lifetime.hpp"

#include <thread>
#include <vector>

namespace {

using ftcuda::core::Lifetime;

struct Handle {
    Lifetime lifetime;
    std::atomic<int> inside{0};
    std::atomic<int> destroyed{0};
    int payload = 0;   // plain: written by users before close, read by the destroyer

    void destroy() {
        CHECK(inside.load() == 0);
        CHECK(payload == 1);
        ++destroyed;
    }
    void use() {
        if (lifetime.enter() != 0) return;
        ++inside;
        CHECK(destroyed.load() == 0);
        --inside;
        if (Lifetime::last(lifetime.leave())) destroy();
    }
    void close() {
        if (lifetime.close()) destroy();
    }
};

void race() {
    for (int round = 0; round < 2000; ++round) {
        Handle handle;
        handle.payload = 1;
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 2; ++thread) {
            threads.emplace_back([&] {
                for (int turn = 0; turn < 20; ++turn) handle.use();
            });
        }
        threads.emplace_back([&] { handle.close(); });
        threads.emplace_back([&] { handle.close(); });
        for (std::thread& thread : threads) thread.join();
        CHECK(handle.destroyed.load() == 1);
        CHECK(handle.lifetime.is_closing());
        handle.use();
        CHECK(handle.destroyed.load() == 1);
    }
}

void inner_leases() {
    Lifetime lifetime;
    bool done = false;
    CHECK(lifetime.enter(Lifetime::inner) == 0);
    CHECK(!lifetime.close_unless_inner(done) && !done);
    CHECK(!lifetime.is_closing());
    CHECK(!Lifetime::last(lifetime.leave(Lifetime::inner), Lifetime::inner));
    CHECK(lifetime.close_unless_inner(done) && done);
    CHECK(lifetime.enter(Lifetime::inner) == Lifetime::closing);
}

void exclusive_bit() {
    Lifetime lifetime;
    lifetime.begin_exclusive();
    CHECK(lifetime.enter(Lifetime::inner, Lifetime::closing | Lifetime::exclusive) == Lifetime::exclusive);
    CHECK(lifetime.enter() == 0);
    CHECK(!lifetime.close());
    CHECK(Lifetime::last(lifetime.leave()));
}

}  // namespace

int main() {
    race();
    inner_leases();
    exclusive_bit();
    return ftcuda::test::report();
}
