// The baseline: the driver's C functions, called from C++ threads.
//
//     baseline DRIVER IMAGE APART CASE THREADS CALLS     prints what benchmarks/measure.py prints
//
// APART: nanoseconds that a thread lets pass between two calls, as if it had something else to do.
#include "../src/ftcuda/_driver/abi.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

using namespace ftcuda::abi;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int burst = 500;      // calls between two synchronisations
constexpr int graph_burst = 8;  // the same, of graphs
constexpr int nodes = 20;       // kernels in a graph
constexpr int few_nodes = 4;    // of another one
constexpr int warm_up = 5000;   // calls
constexpr int widths[] = {64, 512, 512, 10};
constexpr float weight = 1.f / 128;  // each, so that an answer is exactly an eighth of the sum of the inputs

void* library;
Clock::duration apart;

void check(CUresult result, const char* name) {
    if (result == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s: %d\n", name, static_cast<int>(result));
    std::exit(1);
}

template <class Function>
Function find(const char* name, const char* otherwise = "") {
    for (const char* each : {name, otherwise}) {
        if (const auto found = reinterpret_cast<Function>(dlsym(library, each))) return found;
    }
    check(CUDA_ERROR_NOT_FOUND, name);
    return nullptr;
}

// A driver function, found once.
#define ENTRY(name, ...) CUresult (*const name)(__VA_ARGS__) = find<CUresult (*)(__VA_ARGS__)>(#name)

struct Driver {
    ENTRY(cuInit, unsigned);
    ENTRY(cuDevicePrimaryCtxRetain, CUcontext*, CUdevice);
    ENTRY(cuCtxSetCurrent, CUcontext);
    ENTRY(cuModuleLoadDataEx, CUmodule*, const void*, unsigned, int*, void**);
    ENTRY(cuModuleGetFunction, CUfunction*, CUmodule, const char*);
    ENTRY(cuStreamCreateWithPriority, CUstream*, unsigned, int);
    ENTRY(cuStreamSynchronize, CUstream);
    ENTRY(cuStreamWaitEvent, CUstream, CUevent, unsigned);
    ENTRY(cuEventCreate, CUevent*, unsigned);
    ENTRY(cuEventRecord, CUevent, CUstream);
    ENTRY(cuEventQuery, CUevent);
    ENTRY(cuMemAlloc_v2, CUdeviceptr*, std::size_t);
    ENTRY(cuMemAllocAsync, CUdeviceptr*, std::size_t, CUstream);
    ENTRY(cuMemFreeAsync, CUdeviceptr, CUstream);
    ENTRY(cuMemHostAlloc, void**, std::size_t, unsigned);
    // The simulated driver has only the copy between any two addresses, which are passed alike.
    using Copy = CUresult (*)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
    const Copy to_device = find<Copy>("cuMemcpyHtoDAsync_v2", "cuMemcpyAsync");
    const Copy to_host = find<Copy>("cuMemcpyDtoHAsync_v2", "cuMemcpyAsync");
    ENTRY(cuMemcpyDtoH_v2, void*, CUdeviceptr, std::size_t);
    ENTRY(cuMemsetD8Async, CUdeviceptr, unsigned char, std::size_t, CUstream);
    ENTRY(cuMemsetD32Async, CUdeviceptr, unsigned, std::size_t, CUstream);
    ENTRY(cuStreamBeginCapture_v2, CUstream, int);
    ENTRY(cuStreamEndCapture, CUstream, CUgraph*);
    ENTRY(cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long);
    ENTRY(cuGraphLaunch, CUgraphExec, CUstream);
    ENTRY(cuGraphGetNodes, CUgraph, CUgraphNode*, std::size_t*);
    ENTRY(cuGraphExecKernelNodeSetParams_v2, CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v2*);
    ENTRY(cuLaunchKernelEx, const CUlaunchConfig*, CUfunction, void**, void**);
};

// A graph whose kernels add to two numbers.
struct CountingGraph {
    CUgraphExec executable = nullptr;
    std::vector<CUgraphNode> nodes;
    CUdeviceptr sums = 0;
    unsigned kernels = 0;
    std::atomic<unsigned> launches{0};
    unsigned rebound = 0;  // launches with arguments of their own; the others add one with each kernel
    std::mutex mutex;      // the driver wants calls that name an executable one at a time
};

// What all threads share.
struct Shared {
    Driver cu;
    CUcontext context = nullptr;
    CUfunction nothing = nullptr;
    CUfunction count = nullptr, add = nullptr;
    CUfunction dense = nullptr;
    CUdeviceptr x = 0;
    CUdeviceptr weights[3] = {};
    CUdeviceptr biases[3] = {};

    std::mutex graphs_mutex;
    std::deque<CountingGraph> graphs;  // where they lie, they stay
};

// What one thread repeats; the milliseconds of each call, if they are asked for.
using Loop = std::function<void(int calls, std::vector<double>& milliseconds)>;

CUdeviceptr device_memory(const Shared& shared, CUstream stream, std::size_t bytes) {
    CUdeviceptr pointer = 0;
    check(shared.cu.cuMemAlloc_v2(&pointer, bytes), "cuMemAlloc");
    check(shared.cu.cuMemsetD8Async(pointer, 0, bytes, stream), "cuMemsetD8Async");
    return pointer;
}

CUdeviceptr host_memory(const Shared& shared, std::size_t bytes) {
    void* pointer = nullptr;
    check(shared.cu.cuMemHostAlloc(&pointer, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
    return reinterpret_cast<std::uintptr_t>(pointer);
}

CUresult launch(const Shared& shared, CUfunction function, unsigned grid, unsigned block, CUstream stream,
                void** parameters) {
    CUlaunchConfig config{};
    config.gridDimX = grid;
    config.blockDimX = block;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    return shared.cu.cuLaunchKernelEx(&config, function, parameters, nullptr);
}

void pass() {
    if (apart == Clock::duration::zero()) return;
    const auto until = Clock::now() + apart;
    while (Clock::now() < until) {
    }
}

template <class Call>
Loop bursts(const Shared& shared, CUstream stream, Call call, int size = burst) {
    return [&shared, stream, call, size](int calls, std::vector<double>&) {
        for (int index = 0; index < calls; ++index) {
            check(call(), "the call");
            pass();
            if (index % size == size - 1 || index == calls - 1)
                check(shared.cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
        }
    };
}

// What `submit` submits to the stream, as a graph. Relaxed, since other threads make their own things meanwhile.
template <class Submit>
CUgraphExec captured(const Shared& shared, CUstream stream, Submit submit, CUgraph& graph) {
    CUgraphExec executable = nullptr;
    check(shared.cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
    submit();
    check(shared.cu.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    check(shared.cu.cuGraphInstantiateWithFlags(&executable, graph, 0), "cuGraphInstantiateWithFlags");
    return executable;
}

Loop launches(const Shared& shared, CUstream stream) {
    return bursts(shared, stream, [&shared, stream] {
        int n = 0;
        float a = 2;
        CUdeviceptr x = shared.x;
        void* parameters[] = {&n, &a, &x, &x};
        return launch(shared, shared.nothing, 1, 1, stream, parameters);
    });
}

Loop allocations(const Shared& shared, CUstream stream) {
    return bursts(shared, stream, [&shared, stream] {
        CUdeviceptr pointer = 0;
        check(shared.cu.cuMemAllocAsync(&pointer, 65536, stream), "cuMemAllocAsync");
        return shared.cu.cuMemFreeAsync(pointer, stream);
    });
}

CUevent recorded(const Shared& shared, CUstream stream) {
    CUevent event = nullptr;
    check(shared.cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    check(shared.cu.cuEventRecord(event, stream), "cuEventRecord");
    check(shared.cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
    return event;
}

Loop records(const Shared& shared, CUstream stream) {
    return bursts(shared, stream, [&shared, stream, event = recorded(shared, stream)] {
        return shared.cu.cuEventRecord(event, stream);
    });
}

Loop queries(const Shared& shared, CUstream stream) {
    return bursts(shared, stream,
                  [&shared, event = recorded(shared, stream)] { return shared.cu.cuEventQuery(event); });
}

Loop waits(const Shared& shared, CUstream stream) {
    return bursts(shared, stream, [&shared, stream, event = recorded(shared, stream)] {
        return shared.cu.cuStreamWaitEvent(stream, event, 0);
    });
}

Loop copies(const Shared& shared, CUstream stream, std::size_t bytes) {
    return bursts(shared, stream,
                  [&shared, stream, bytes, to = device_memory(shared, stream, bytes),
                   from = host_memory(shared, bytes)] { return shared.cu.to_device(to, from, bytes, stream); });
}

CountingGraph& make_counter(Shared& shared, int kernels, CUstream stream) {
    const std::lock_guard<std::mutex> lock(shared.graphs_mutex);
    CountingGraph& graph = shared.graphs.emplace_back();
    graph.kernels = static_cast<unsigned>(kernels);
    graph.sums = device_memory(shared, stream, 2 * sizeof(unsigned));
    check(shared.cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
    return graph;
}

// With the arguments of launches that have none of their own.
CUresult count_once(const Shared& shared, CUfunction count, CountingGraph& graph, CUstream stream) {
    unsigned a = 1, b = 1, c = 0;
    void* parameters[] = {&graph.sums, &a, &b, &c};  // of which `count` takes the first
    return launch(shared, count, 1, 1, stream, parameters);
}

CountingGraph& make_graph(Shared& shared, CUfunction count, int kernels, CUstream stream) {
    CountingGraph& graph = make_counter(shared, kernels, stream);
    CUgraph captured_graph = nullptr;
    const auto submit = [&] {
        for (int kernel = 0; kernel < kernels; ++kernel)
            check(count_once(shared, count, graph, stream), "cuLaunchKernelEx");
    };
    graph.executable = captured(shared, stream, submit, captured_graph);
    std::size_t number = graph.kernels;
    graph.nodes.resize(number);
    check(shared.cu.cuGraphGetNodes(captured_graph, graph.nodes.data(), &number), "cuGraphGetNodes");
    return graph;
}

// Counted once for all of a loop's launches, so that threads do not meet there.
template <class Call>
Loop graph_launches(const Shared& shared, CUstream stream, CountingGraph& graph, Call call) {
    return [&graph, loop = bursts(shared, stream, call, graph_burst)](int calls, std::vector<double>& milliseconds) {
        loop(calls, milliseconds);
        graph.launches += static_cast<unsigned>(calls);
    };
}

Loop private_graphs(Shared& shared, CUfunction count, int kernels, CUstream stream) {
    CountingGraph& graph = make_graph(shared, count, kernels, stream);
    return graph_launches(shared, stream, graph, [&shared, stream, executable = graph.executable] {
        return shared.cu.cuGraphLaunch(executable, stream);
    });
}

// All arguments of all nodes are others than those of the launch before.
Loop rebound_graphs(Shared& shared, int kernels, CUstream stream) {
    CountingGraph& graph = make_graph(shared, shared.add, kernels, stream);
    return graph_launches(shared, stream, graph, [&shared, stream, &graph] {
        CUdeviceptr sum = graph.sums + graph.rebound % 2 * sizeof(unsigned);
        unsigned a = graph.rebound, b = a + 1, c = a + 2;
        void* parameters[] = {&sum, &a, &b, &c};
        CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
        kernel.func = shared.add;
        kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
        kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
        kernel.kernelParams = parameters;
        for (const CUgraphNode node : graph.nodes)
            check(shared.cu.cuGraphExecKernelNodeSetParams_v2(graph.executable, node, &kernel),
                  "cuGraphExecKernelNodeSetParams");
        ++graph.rebound;
        return shared.cu.cuGraphLaunch(graph.executable, stream);
    });
}

Loop one_by_one(Shared& shared, CUstream stream) {
    CountingGraph& graph = make_counter(shared, nodes, stream);
    return graph_launches(shared, stream, graph, [&shared, stream, &graph] {
        for (int kernel = 1; kernel < nodes; ++kernel)
            check(count_once(shared, shared.add, graph, stream), "cuLaunchKernelEx");
        return count_once(shared, shared.add, graph, stream);
    });
}

// A kernel, and a wait for it.
Loop round_trips(Shared& shared, CUstream stream) {
    CountingGraph& graph = make_counter(shared, 1, stream);
    return [&shared, stream, &graph](int calls, std::vector<double>&) {
        for (int call = 0; call < calls; ++call) {
            check(count_once(shared, shared.count, graph, stream), "cuLaunchKernelEx");
            check(shared.cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
        }
        graph.launches += static_cast<unsigned>(calls);
    };
}

Loop shared_graph(Shared& shared, CUstream stream) {
    CountingGraph& graph = shared.graphs.front();
    return graph_launches(shared, stream, graph, [&shared, stream, &graph] {
        const std::lock_guard<std::mutex> lock(graph.mutex);
        return shared.cu.cuGraphLaunch(graph.executable, stream);
    });
}

// After the last launch: each of its kernels added what it had to.
void check_graphs(Shared& shared) {
    for (CountingGraph& graph : shared.graphs) {
        unsigned found[2] = {};
        check(shared.cu.cuMemcpyDtoH_v2(found, graph.sums, sizeof found), "cuMemcpyDtoH");
        unsigned expected = graph.launches.load() - graph.rebound;
        for (unsigned number = 0; number < graph.rebound; ++number) expected += number * (number + 1) + number + 2;
        expected *= graph.kernels;
        if (found[0] + found[1] == expected) continue;
        std::fprintf(stderr, "%u launches of %u kernels counted to %u, and not to %u\n", graph.launches.load(),
                     graph.kernels, found[0] + found[1], expected);
        std::exit(1);
    }
}

// Each request has another input, and each answer is looked at.
Loop requests(const Shared& shared, CUstream stream, bool as_graph) {
    std::vector<CUdeviceptr> activations;
    for (const int width : widths)
        activations.push_back(device_memory(shared, stream, 4 * static_cast<std::size_t>(width)));
    const CUdeviceptr input = host_memory(shared, 4 * widths[0]);
    const CUdeviceptr output = host_memory(shared, 4 * widths[3]);
    const auto submit = [=, &shared] {
        check(shared.cu.to_device(activations[0], input, 4 * widths[0], stream), "the copy to the device");
        for (int layer = 0; layer < 3; ++layer) {
            int inputs = widths[layer];
            int outputs = widths[layer + 1];
            int is_hidden = layer < 2;
            CUdeviceptr weights = shared.weights[layer], bias = shared.biases[layer];
            CUdeviceptr from = activations[static_cast<std::size_t>(layer)],
                        to = activations[static_cast<std::size_t>(layer) + 1];
            void* parameters[] = {&inputs, &outputs, &is_hidden, &weights, &bias, &from, &to};
            check(launch(shared, shared.dense, static_cast<unsigned>(outputs + 7) / 8, 256, stream, parameters),
                  "cuLaunchKernelEx");
        }
        check(shared.cu.to_host(output, activations[3], 4 * widths[3], stream), "the copy to the host");
    };
    CUgraph captured_graph = nullptr;
    const CUgraphExec graph = as_graph ? captured(shared, stream, submit, captured_graph) : nullptr;
    volatile float* const pixels = reinterpret_cast<float*>(input);
    const volatile float* const answer = reinterpret_cast<float*>(output);
    for (int pixel = 0; pixel < widths[0]; ++pixel) pixels[pixel] = 0;
    return [=, &shared](int calls, std::vector<double>& milliseconds) {
        for (int call = 0; call < calls; ++call) {
            const auto begin = Clock::now();
            pixels[0] = pixels[0] + 1;
            if (as_graph) check(shared.cu.cuGraphLaunch(graph, stream), "cuGraphLaunch");
            else submit();
            check(shared.cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
            if (8 * answer[widths[3] - 1] != pixels[0]) {
                std::fprintf(stderr, "the answer to %g is %g\n", pixels[0], answer[widths[3] - 1]);
                std::exit(1);
            }
            milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
        }
    };
}

const std::map<std::string, std::function<Loop(Shared&, CUstream)>> cases = {
    {"launch", launches},
    {"allocate", allocations},
    {"record", records},
    {"is_done", queries},
    {"wait", waits},
    {"copy_256_b", [](const Shared& shared, CUstream stream) { return copies(shared, stream, 256); }},
    {"copy_64_kib", [](const Shared& shared, CUstream stream) { return copies(shared, stream, 65536); }},
    {"worker", [](const Shared& shared, CUstream stream) { return requests(shared, stream, false); }},
    {"graph", [](Shared& shared, CUstream stream) { return private_graphs(shared, shared.count, nodes, stream); }},
    {"overlapping_graph",
     [](Shared& shared, CUstream stream) { return private_graphs(shared, shared.add, nodes, stream); }},
    {"overlapping_graph_of_4",
     [](Shared& shared, CUstream stream) { return private_graphs(shared, shared.add, few_nodes, stream); }},
    {"rebound_graph", [](Shared& shared, CUstream stream) { return rebound_graphs(shared, nodes, stream); }},
    {"rebound_graph_of_4", [](Shared& shared, CUstream stream) { return rebound_graphs(shared, few_nodes, stream); }},
    {"one_by_one", one_by_one},
    {"sync_round_trip", round_trips},
    {"shared_graph", shared_graph},
    {"worker_graph", [](const Shared& shared, CUstream stream) { return requests(shared, stream, true); }},
};

}  // namespace

int main(int, char** arguments) {
    library = dlopen(arguments[1], RTLD_NOW);
    if (library == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    std::ifstream file(arguments[2], std::ios::binary);
    const std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    apart = std::chrono::nanoseconds(std::atoi(arguments[3]));
    const auto& make = cases.at(arguments[4]);
    const int threads = std::atoi(arguments[5]);
    const int calls = std::atoi(arguments[6]);

    Shared shared;
    const Driver& cu = shared.cu;
    CUmodule module = nullptr;
    check(cu.cuInit(0), "cuInit");
    check(cu.cuDevicePrimaryCtxRetain(&shared.context, 0), "cuDevicePrimaryCtxRetain");
    check(cu.cuCtxSetCurrent(shared.context), "cuCtxSetCurrent");
    check(cu.cuModuleLoadDataEx(&module, image.c_str(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
    check(cu.cuModuleGetFunction(&shared.nothing, module, "nothing"), "cuModuleGetFunction");
    check(cu.cuModuleGetFunction(&shared.count, module, "count"), "cuModuleGetFunction");
    check(cu.cuModuleGetFunction(&shared.add, module, "add"), "cuModuleGetFunction");
    check(cu.cuModuleGetFunction(&shared.dense, module, "dense"), "cuModuleGetFunction");
    shared.x = device_memory(shared, nullptr, 4096);
    unsigned bits = 0;
    std::memcpy(&bits, &weight, sizeof bits);
    for (int layer = 0; layer < 3; ++layer) {
        const std::size_t inputs = static_cast<std::size_t>(widths[layer]),
                          outputs = static_cast<std::size_t>(widths[layer + 1]);
        shared.weights[layer] = device_memory(shared, nullptr, 4 * inputs * outputs);
        check(cu.cuMemsetD32Async(shared.weights[layer], bits, inputs * outputs, nullptr), "cuMemsetD32Async");
        shared.biases[layer] = device_memory(shared, nullptr, 4 * outputs);
    }
    check(cu.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
    if (arguments[4] == std::string("shared_graph")) {
        CUstream stream = nullptr;
        check(cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), "cuStreamCreateWithPriority");
        make_graph(shared, shared.count, nodes, stream);
    }

    std::atomic<int> ready{0};
    std::vector<std::thread> workers;
    std::vector<Clock::time_point> begins(static_cast<std::size_t>(threads)), ends(begins);
    std::vector<std::vector<double>> milliseconds(begins.size());
    for (std::size_t index = 0; index < begins.size(); ++index) {
        workers.emplace_back([&, index] {
            CUstream stream = nullptr;
            check(cu.cuCtxSetCurrent(shared.context), "cuCtxSetCurrent");
            check(cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), "cuStreamCreateWithPriority");
            const Loop loop = make(shared, stream);
            loop(std::min(calls, warm_up), milliseconds[index]);
            check(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
            milliseconds[index].clear();
            ++ready;
            while (ready.load() < threads) std::this_thread::yield();
            begins[index] = Clock::now();
            loop(calls, milliseconds[index]);
            ends[index] = Clock::now();
        });
    }
    for (std::thread& worker : workers) worker.join();
    check_graphs(shared);
    const std::chrono::duration<double> seconds =
        *std::max_element(ends.begin(), ends.end()) - *std::min_element(begins.begin(), begins.end());
    std::printf("{\"rate\": %.3f, \"milliseconds\": [", threads * calls / seconds.count());
    std::vector<double> all;
    for (const std::vector<double>& mine : milliseconds) all.insert(all.end(), mine.begin(), mine.end());
    std::sort(all.begin(), all.end());
    for (std::size_t percent = 1; percent < 100 && !all.empty(); ++percent) {
        std::printf("%s%.5f", percent == 1 ? "" : ", ", all[all.size() * percent / 100]);
    }
    std::printf("]}\n");
    std::fflush(nullptr);
    std::_Exit(0);
}
