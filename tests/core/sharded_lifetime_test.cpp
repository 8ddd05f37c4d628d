// Spread lifetimes, one step at a time: what another thread might do between any two steps is done there by the same
// thread.
#include "../check.hpp"

#include "../../src/ftcuda/_driver/schedule.hpp"

namespace {

struct Scene;
using Calls = void (*)(Scene&);

// Somebody else's calls, at one of the points where a schedule could let another thread go on.
struct Interruption {
    Calls calls = nullptr;
    Scene* scene = nullptr;
    int wanted = 0;
    int passed = 0;
};
Interruption interruption;

void at_point() {
    if (interruption.calls == nullptr || interruption.passed++ != interruption.wanted) return;
    const Calls calls = interruption.calls;
    interruption.calls = nullptr;  // whoever interrupts is not interrupted
    calls(*interruption.scene);
}

}  // namespace

#undef FTCUDA_SCHEDULE_POINT
#define FTCUDA_SCHEDULE_POINT(where) at_point()
#include "../../src/ftcuda/_core/sync/sharded_lifetime.hpp"

namespace {

using ftcuda::core::ShardedLifetime;

// A handle; who destroys it, and that nobody is inside then.
struct Scene {
    ShardedLifetime lifetime;
    int inside = 0;
    int destroyed = 0;

    bool enter() {
        const ftcuda::core::Entrance entrance = lifetime.enter();
        if (entrance == ftcuda::core::Entrance::last) destroy();
        if (entrance == ftcuda::core::Entrance::inside) {
            CHECK(destroyed == 0);
            ++inside;
        }
        return entrance == ftcuda::core::Entrance::inside;
    }
    void leave() {
        --inside;
        if (lifetime.leave()) destroy();
    }
    void use() {
        if (enter()) leave();
    }
    void close() {
        if (lifetime.close()) destroy();
    }
    void destroy() {
        CHECK(inside == 0);
        ++destroyed;
    }
};

// `calls` by one thread, and at each of its points in turn `others`; spread before them, or never. In the end all have
// left and the handle is closed.
void interleave(Calls calls, Calls others, bool spread) {
    for (int wanted = 0;; ++wanted) {
        Scene scene;
        if (spread) CHECK(scene.lifetime.spread());
        interruption = {others, &scene, wanted, 0};
        calls(scene);
        const bool interrupted = interruption.calls == nullptr;
        interruption = {};
        if (!interrupted) return;
        CHECK(scene.destroyed == 1);
        CHECK(!scene.enter() && scene.destroyed == 1);
    }
}

void every_interleaving_of_two() {
    const Calls use = [](Scene& scene) { scene.use(); };
    const Calls close = [](Scene& scene) { scene.close(); };
    const Calls close_and_use = [](Scene& scene) {
        scene.close();
        scene.use();
    };
    const Calls spread_and_close = [](Scene& scene) {
        CHECK(scene.lifetime.spread());
        scene.use();
        scene.close();
    };
    for (const bool spread : {false, true}) {
        interleave(use, close, spread);
        interleave(use, close_and_use, spread);
        interleave(use, spread_and_close, spread);
        interleave(close, use, spread);
        interleave(close, close_and_use, spread);
        interleave(close_and_use, close_and_use, spread);
    }
}

// Threads meet at the word: a lease that is taken there is given back at a cell.
void leases_move() {
    Scene scene;
    CHECK(scene.enter());
    CHECK(scene.lifetime.spread());
    CHECK(scene.enter());
    scene.leave();
    scene.close();
    CHECK(scene.destroyed == 0);
    scene.leave();
    CHECK(scene.destroyed == 1);
}

}  // namespace

int main() {
    every_interleaving_of_two();
    leases_move();
    return ftcuda::test::report();
}
