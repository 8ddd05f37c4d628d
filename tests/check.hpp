// Checks for the C++ tests: a failed one prints where and goes on; report() ends main.
#pragma once

#include <atomic>
#include <cstdio>

namespace ftcuda::test {

inline std::atomic<unsigned> checks{0};
inline std::atomic<unsigned> failures{0};

inline void check(bool holds, const char* what, const char* file, int line) {
    checks.fetch_add(1, std::memory_order_relaxed);  // a check must not order what it looks at
    if (holds) return;
    ++failures;
    std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

inline int report() {
    std::printf("%u checks, %u failures\n", checks.load(), failures.load());
    return failures.load() == 0 && checks.load() != 0 ? 0 : 1;
}

}  // namespace ftcuda::test

#define CHECK(condition) ftcuda::test::check((condition), #condition, __FILE__, __LINE__)
