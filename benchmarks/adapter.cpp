// What a call through ftcuda's adapter costs, beside one through a pointer that the program found by itself.
#include <ftcuda/driver.h>

#include <chrono>

#include <dlfcn.h>

namespace {

using DriverGetVersion = int (*)(int*);

template <class Call>
double nanoseconds_each(long count, Call call) {
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < count; ++i) call();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    return time.count() / static_cast<double>(count);
}

}  // namespace

// Of a direct call, of one through the adapter, and of finding the function. -1 in `direct`: it was not found.
extern "C" void measure(const ftcuda_driver_v1* driver, const char* path, long count, double* direct, double* adapter,
                        double* find) {
    void* const library = dlopen(path, RTLD_NOW);
    const auto theirs =
        library != nullptr ? reinterpret_cast<DriverGetVersion>(dlsym(library, "cuDriverGetVersion")) : nullptr;
    void* found = nullptr;
    *direct = -1;
    if (theirs == nullptr || driver->find("cuDriverGetVersion", 2020, &found) != 0) return;
    const auto ours = reinterpret_cast<DriverGetVersion>(found);
    int version = 0;
    *direct = nanoseconds_each(count, [&] { theirs(&version); });
    *adapter = nanoseconds_each(count, [&] { ours(&version); });
    *find = nanoseconds_each(count / 100, [&] { driver->find("cuDriverGetVersion", 2020, &found); });
}
