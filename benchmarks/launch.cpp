// The baseline: launches straight through the driver's C functions, from C++ threads.
//
//     launch DRIVER IMAGE THREADS LAUNCHES     prints nanoseconds per launch and thread
#include "../src/ftcuda/_driver/abi.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

using namespace ftcuda::abi;

namespace {

void* library;

template <class... Parameters, class... Arguments>
void call(CUresult (*)(Parameters...), const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<CUresult (*)(Parameters...)>(dlsym(library, name));
    const CUresult result = function == nullptr ? -1 : function(arguments...);
    if (result != CUDA_SUCCESS) {
        std::fprintf(stderr, "%s: %d\n", name, result);
        std::exit(1);
    }
}

#define ENTRY(name, ...) static_cast<CUresult (*)(__VA_ARGS__)>(nullptr), #name

}  // namespace

int main(int, char** arguments) {
    library = dlopen(arguments[1], RTLD_NOW);
    if (library == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    std::ifstream file(arguments[2], std::ios::binary);
    const std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const int threads = std::atoi(arguments[3]);
    const int launches = std::atoi(arguments[4]);

    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUdeviceptr x = 0;
    call(ENTRY(cuInit, unsigned), 0u);
    call(ENTRY(cuDevicePrimaryCtxRetain, CUcontext*, CUdevice), &context, 0);
    call(ENTRY(cuCtxSetCurrent, CUcontext), context);
    call(ENTRY(cuModuleLoadDataEx, CUmodule*, const void*, unsigned, int*, void**), &module, static_cast<const void*>(image.c_str()), 0u,
         static_cast<int*>(nullptr), static_cast<void**>(nullptr));
    call(ENTRY(cuModuleGetFunction, CUfunction*, CUmodule, const char*), &function, module, "nothing");
    call(ENTRY(cuMemAlloc_v2, CUdeviceptr*, std::size_t), &x, std::size_t{4096});
    using Launch = CUresult (*)(const CUlaunchConfig*, CUfunction, void**, void**);
    const auto launch = reinterpret_cast<Launch>(dlsym(library, "cuLaunchKernelEx"));

    std::atomic<int> ready{0};
    std::vector<std::thread> workers;
    std::vector<double> nanoseconds(static_cast<std::size_t>(threads));
    for (int index = 0; index < threads; ++index) {
        workers.emplace_back([&, index] {
            CUstream stream = nullptr;
            call(ENTRY(cuCtxSetCurrent, CUcontext), context);
            call(ENTRY(cuStreamCreateWithPriority, CUstream*, unsigned, int), &stream, unsigned{CU_STREAM_NON_BLOCKING}, 0);
            int n = 0;
            float a = 2.0f;
            void* parameters[] = {&n, &a, &x, &x};
            const auto run = [&](int count) {
                for (int i = 0; i < count; ++i) {
                    CUlaunchConfig config{};
                    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
                    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
                    config.hStream = stream;
                    if (launch(&config, function, parameters, nullptr) != CUDA_SUCCESS) std::exit(1);
                    if (i % 500 == 499) call(ENTRY(cuStreamSynchronize, CUstream), stream);
                }
            };
            run(1000);
            ++ready;
            while (ready.load() < threads) std::this_thread::yield();
            const auto begin = std::chrono::steady_clock::now();
            run(launches);
            const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
            nanoseconds[static_cast<std::size_t>(index)] = time.count() / launches;
        });
    }
    for (std::thread& worker : workers) worker.join();
    double total = 0;
    for (const double time : nanoseconds) total += time;
    std::printf("%.1f\n", total / threads);
    std::fflush(nullptr);
    std::_Exit(0);
}
