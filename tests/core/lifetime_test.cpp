// Leases under fire: many threads enter, leave and close one word; exactly one of them destroys, after everybody left.
#include "../check.hpp"

#include "../../src/ftcuda/_core/sync/ref.hpp"
#include "../../src/ftcuda/_core/sync/sharded_lifetime.hpp"

#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace {

using ftcuda::core::Lifetime;

constexpr int users = 3;

// Nothing here synchronises but the word itself, so that ThreadSanitizer sees an order that the word does not give.
struct Handle {
    Lifetime lifetime;
    std::array<int, users> written{};  // plain: by each user, inside its lease
    bool prepared = false;             // plain: by the closer, before it closes
    int destroyed = 0;                 // plain: by the destroyer

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

// So many rounds, or 20 s of them: on an emulated processor one takes a tenth of a second.
class Rounds {
public:
    explicit Rounds(int wanted) : wanted_(wanted) {}
    bool next() { return number_++ < wanted_ && std::chrono::steady_clock::now() < end_; }
    int number() const { return number_; }

private:
    const int wanted_;
    int number_ = 0;
    const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(20);
};

void race() {
    for (Rounds rounds(2000); rounds.next();) {
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
    ftcuda::core::ShardedLifetime lifetime;
    std::array<int, users> written{};  // plain: by each user, inside its lease
    int destroyed = 0;                 // plain: by the destroyer

    void destroy() {
        for (const int count : written) CHECK(count >= 0);
        ++destroyed;
    }
    bool use(int user) {
        const ftcuda::core::Entrance entrance = lifetime.enter();
        const bool inside = entrance == ftcuda::core::Entrance::inside;
        if (inside) ++written[static_cast<std::size_t>(user)];
        if (inside ? lifetime.leave() : entrance == ftcuda::core::Entrance::last) destroy();
        return inside;
    }
    void close() {
        if (lifetime.close()) destroy();
    }
};

void race_while_spreading() {
    for (Rounds rounds(2000); rounds.next();) {
        SpreadHandle handle;
        if (rounds.number() % 3 == 0) CHECK(handle.lifetime.spread());
        std::vector<std::thread> threads;
        for (int user = 0; user < users; ++user) {
            threads.emplace_back([&handle, user] {
                while (handle.use(user)) {
                }
            });
        }
        if (rounds.number() % 3 == 1) threads.emplace_back([&] { CHECK(handle.lifetime.spread()); });
        for (int closer = 0; closer < 2; ++closer) threads.emplace_back([&] { handle.close(); });
        for (std::thread& thread : threads) thread.join();
        CHECK(handle.destroyed == 1);
        CHECK(handle.lifetime.is_closing());
        CHECK(!handle.use(0));
        CHECK(handle.destroyed == 1);
    }
}

void many_closers() {
    for (Rounds rounds(1000); rounds.next();) {
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
    std::array<int, users> written{};  // plain: by each owner, before it lets go

private:
    ~Counted() override {
        for (const int count : written) CHECK(count == 1);
        ++deleted_;
    }
    int& deleted_;
};

void owners() {
    for (Rounds rounds(1000); rounds.next();) {
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
    CHECK(lifetime.enter(Lifetime::inner) == 0);
    CHECK(!lifetime.close() && lifetime.is_closing());
    CHECK(Lifetime::last(lifetime.leave(Lifetime::inner), Lifetime::inner));
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

// What a section does and what submissions do see each other, by the word alone: the flags here order nothing.
void sections_and_submissions() {
    for (int round = 0; round < 50; ++round) {
        Lifetime lifetime;
        std::atomic<int> step{0};      // relaxed
        std::array<int, 2> written{};  // plain: by the submission before the section, and by the section
        const auto wait_for = [&](int wanted) {
            while (step.load(std::memory_order_relaxed) < wanted) std::this_thread::yield();
        };
        std::thread section([&] {
            wait_for(1);
            lifetime.begin_exclusive();
            step.store(2, std::memory_order_relaxed);
            while ((lifetime.load() & Lifetime::inner_leases) != 0) std::this_thread::yield();
            CHECK(written[0] == 1);
            written[1] = 1;
            lifetime.end_exclusive();
            step.store(3, std::memory_order_relaxed);
        });
        std::thread submissions([&] {
            constexpr Lifetime::Word held_back = Lifetime::closing | Lifetime::exclusive;
            CHECK(lifetime.enter(Lifetime::inner, held_back) == 0);
            step.store(1, std::memory_order_relaxed);
            wait_for(2);
            written[0] = 1;
            lifetime.leave(Lifetime::inner);
            wait_for(3);
            CHECK(lifetime.enter(Lifetime::inner, held_back) == 0);
            CHECK(written[1] == 1);
            lifetime.leave(Lifetime::inner);
        });
        section.join();
        submissions.join();
    }
}

}  // namespace

int main() {
    sections_and_submissions();
    race();
    race_while_spreading();
    many_closers();
    owners();
    inner_leases();
    exclusive_bit();
    return ftcuda::test::report();
}
