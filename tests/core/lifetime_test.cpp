// Leases under fire: many threads enter, leave and close one word; exactly one of them destroys, after everybody left.
#include "../check.hpp"

#include "../../src/ftcuda/_core/spread_lifetime.hpp"

#include <array>
#include <thread>
#include <vector>

namespace {

using ftcuda::core::Lifetime;

constexpr int users = 3;

// Nothing here synchronises but the word itself, so that ThreadSanitizer sees an order that the word does not give.
struct Handle {
    Lifetime lifetime;
    std::array<int, users> written{};   // plain: by each user, inside its lease
    bool prepared = false;              // plain: by the closer, before it closes
    int destroyed = 0;                  // plain: by the destroyer

    void destroy() {
        for (const int count : written) CHECK(count >= 0);
        CHECK(prepared);
        ++destroyed;
    }
    bool use(int user) {
        if (lifetime.enter() != 0) return false;
        ++written[static_cast<std::size_t>(user)];
        if (Lifetime::last(lifetime.leave())) destroy();
        return true;
    }
    void close() {
        if (lifetime.close()) destroy();
    }
};

void race() {
    for (int round = 0; round < 2000; ++round) {
        Handle handle;
        std::vector<std::thread> threads;
        for (int user = 0; user < users; ++user) {
            threads.emplace_back([&handle, user] {
                while (handle.use(user)) {
                }
            });
        }
        threads.emplace_back([&] {
            handle.prepared = true;
            handle.close();
        });
        for (std::thread& thread : threads) thread.join();
        CHECK(handle.destroyed == 1);
        CHECK(handle.lifetime.is_closing());
        CHECK(!handle.use(0));
        CHECK(handle.destroyed == 1);
    }
}

// The same for a lifetime that is spread before, amid or after that, with two closers.
struct SpreadHandle {
    ftcuda::core::SpreadLifetime lifetime;
    std::array<int, users> written{};  // plain: by each user, inside its lease
    int destroyed = 0;                 // plain: by the destroyer

    void destroy() {
        for (const int count : written) CHECK(count >= 0);
        ++destroyed;
    }
    bool use(int user) {
        bool is_last = false;
        const bool inside = lifetime.enter(is_last);
        if (inside) ++written[static_cast<std::size_t>(user)];
        if (inside ? lifetime.leave() : is_last) destroy();
        return inside;
    }
    void close() {
        bool done = false;
        if (lifetime.close_unless_inner(done)) destroy();
        CHECK(done);
    }
};

void race_while_spreading() {
    for (int round = 0; round < 2000; ++round) {
        SpreadHandle handle;
        if (round % 3 == 0) CHECK(handle.lifetime.spread());
        std::vector<std::thread> threads;
        for (int user = 0; user < users; ++user) {
            threads.emplace_back([&handle, user] {
                while (handle.use(user)) {
                }
            });
        }
        if (round % 3 == 1) threads.emplace_back([&] { CHECK(handle.lifetime.spread()); });
        for (int closer = 0; closer < 2; ++closer) threads.emplace_back([&] { handle.close(); });
        for (std::thread& thread : threads) thread.join();
        CHECK(handle.destroyed == 1);
        CHECK(handle.lifetime.is_closing());
        CHECK(!handle.use(0));
        CHECK(handle.destroyed == 1);
    }
}

void many_closers() {
    for (int round = 0; round < 1000; ++round) {
        Handle handle;
        handle.prepared = true;
        std::vector<std::thread> threads;
        for (int closer = 0; closer < 3; ++closer) threads.emplace_back([&] { handle.close(); });
        for (std::thread& thread : threads) thread.join();
        CHECK(handle.destroyed == 1);
    }
}

class Counted final : public ftcuda::core::Shared {
public:
    explicit Counted(int& deleted) : deleted_(deleted) {}
    std::array<int, users> written{};   // plain: by each owner, before it lets go

private:
    ~Counted() override {
        for (const int count : written) CHECK(count == 1);
        ++deleted_;
    }
    int& deleted_;
};

void owners() {
    for (int round = 0; round < 1000; ++round) {
        int deleted = 0;
        Counted* const counted = new Counted(deleted);
        for (int user = 1; user < users; ++user) counted->retain();
        std::vector<std::thread> threads;
        for (int user = 0; user < users; ++user) {
            threads.emplace_back([counted, user] {
                counted->written[static_cast<std::size_t>(user)] = 1;
                counted->release();
            });
        }
        for (std::thread& thread : threads) thread.join();
        CHECK(deleted == 1);
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
    race_while_spreading();
    many_closers();
    owners();
    inner_leases();
    exclusive_bit();
    return ftcuda::test::report();
}
