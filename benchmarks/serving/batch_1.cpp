// The model by the driver's C functions, from C++ threads that each have a stream and ask one batch after the other.
//
//     batch_1 DRIVER IMAGE MODEL plain|graph ROWS THREADS SECONDS     prints what benchmarks/serving/measure.py prints
//
// ROWS: of a batch; 1 is what a program without batching does, and more say what the device can do. Every answer is
// compared with numpy's.
#include "../../src/ftcuda/_driver/abi.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
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

using Clock = std::chrono::steady_clock;

constexpr float tolerance = 1e-3f;  // as in model.py, and the next two
constexpr unsigned few = 16;        // rows
constexpr unsigned tile = 32;       // rows and outputs
constexpr std::chrono::milliseconds warm{300};

void* library;

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
    ENTRY(cuMemAlloc_v2, CUdeviceptr*, std::size_t);
    ENTRY(cuMemHostAlloc, void**, std::size_t, unsigned);
    // The simulated driver has only the copy between any two addresses, which are passed alike.
    using Copy = CUresult (*)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
    const Copy to_device = find<Copy>("cuMemcpyHtoDAsync_v2", "cuMemcpyAsync");
    const Copy to_host = find<Copy>("cuMemcpyDtoHAsync_v2", "cuMemcpyAsync");
    ENTRY(cuStreamBeginCapture_v2, CUstream, int);
    ENTRY(cuStreamEndCapture, CUstream, CUgraph*);
    ENTRY(cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long);
    ENTRY(cuGraphLaunch, CUgraphExec, CUstream);
    ENTRY(cuLaunchKernelEx, const CUlaunchConfig*, CUfunction, void**, void**);
};

// What model.py saves.
struct Model {
    std::vector<int> widths;
    std::vector<std::vector<float>> weights, biases;
    std::vector<float> rows, answers;

    explicit Model(const char* path) : file_(path, std::ios::binary) {
        widths.resize(integer());
        for (int& each : widths) each = static_cast<int>(integer());
        const std::size_t count = integer();
        for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer) {
            weights.push_back(floats(width(layer) * width(layer + 1)));
            biases.push_back(floats(width(layer + 1)));
        }
        rows = floats(count * width(0));
        answers = floats(count * width(widths.size() - 1));
    }
    std::size_t width(std::size_t layer) const { return static_cast<std::size_t>(widths[layer]); }
    std::size_t inputs() const { return width(0); }
    std::size_t outputs() const { return width(widths.size() - 1); }

private:
    std::size_t integer() {
        std::int32_t value = 0;
        file_.read(reinterpret_cast<char*>(&value), sizeof value);
        return static_cast<std::size_t>(value);
    }
    std::vector<float> floats(std::size_t count) {
        std::vector<float> found(count);
        file_.read(reinterpret_cast<char*>(found.data()), static_cast<std::streamsize>(count * sizeof(float)));
        if (!file_) {
            std::fprintf(stderr, "the model is cut short\n");
            std::exit(1);
        }
        return found;
    }
    std::ifstream file_;
};

// What all threads share.
struct Shared {
    Driver cu;
    CUcontext context = nullptr;
    CUfunction few_rows = nullptr, many_rows = nullptr;
    std::vector<CUdeviceptr> weights, biases;
};

CUdeviceptr device_memory(const Shared& shared, std::size_t floats) {
    CUdeviceptr pointer = 0;
    check(shared.cu.cuMemAlloc_v2(&pointer, floats * sizeof(float)), "cuMemAlloc");
    return pointer;
}

CUdeviceptr copied(const Shared& shared, const std::vector<float>& values) {
    const CUdeviceptr made = device_memory(shared, values.size());
    const CUdeviceptr from = reinterpret_cast<std::uintptr_t>(values.data());
    check(shared.cu.to_device(made, from, values.size() * sizeof(float), nullptr), "the copy to the device");
    check(shared.cu.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
    return made;
}

float* host_memory(const Shared& shared, std::size_t floats) {
    void* pointer = nullptr;
    check(shared.cu.cuMemHostAlloc(&pointer, floats * sizeof(float), CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
    return static_cast<float*>(pointer);
}

// Of one thread: a stream, and what a batch lies in.
class Worker {
public:
    Worker(const Shared& shared, const Model& model, std::size_t rows, bool as_graph)
        : cu_(shared.cu), shared_(shared), model_(model), rows_(rows) {
        check(cu_.cuCtxSetCurrent(shared.context), "cuCtxSetCurrent");
        check(cu_.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0), "cuStreamCreateWithPriority");
        for (std::size_t each = 0; each < model.widths.size(); ++each)
            values_.push_back(device_memory(shared, rows * model.width(each)));
        input_ = host_memory(shared, rows * model.inputs());
        output_ = host_memory(shared, rows * model.outputs());
        if (!as_graph) return;
        CUgraph graph = nullptr;
        check(cu_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
        submit();
        check(cu_.cuStreamEndCapture(stream_, &graph), "cuStreamEndCapture");
        check(cu_.cuGraphInstantiateWithFlags(&graph_, graph, 0), "cuGraphInstantiateWithFlags");
    }

    // Batches until then; how many.
    std::size_t run(Clock::time_point end, std::size_t first, std::vector<double>* milliseconds) {
        const std::size_t count = model_.rows.size() / model_.inputs();
        std::size_t batches = 0;
        for (; Clock::now() < end; ++batches, first = (first + rows_) % count) {
            const auto begin = Clock::now();
            for (std::size_t row = 0; row < rows_; ++row) {
                const auto from = model_.rows.begin() + at((first + row) % count, model_.inputs());
                std::copy(from, from + at(1, model_.inputs()), input_ + row * model_.inputs());
            }
            if (graph_ != nullptr) check(cu_.cuGraphLaunch(graph_, stream_), "cuGraphLaunch");
            else submit();
            check(cu_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
            for (std::size_t row = 0; row < rows_; ++row) look_at(row, (first + row) % count);
            if (milliseconds != nullptr)
                milliseconds->push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
        }
        return batches;
    }

private:
    static std::ptrdiff_t at(std::size_t row, std::size_t width) { return static_cast<std::ptrdiff_t>(row * width); }

    void submit() {
        const CUdeviceptr from = reinterpret_cast<std::uintptr_t>(input_),
                          to = reinterpret_cast<std::uintptr_t>(output_);
        check(cu_.to_device(values_.front(), from, rows_ * model_.inputs() * sizeof(float), stream_), "the copy in");
        for (std::size_t layer = 0; layer + 1 < values_.size(); ++layer) launch(layer);
        check(cu_.to_host(to, values_.back(), rows_ * model_.outputs() * sizeof(float), stream_), "the copy out");
    }

    void launch(std::size_t layer) {
        int rows = static_cast<int>(rows_), inputs = model_.widths[layer], outputs = model_.widths[layer + 1];
        int is_hidden = layer + 2 < model_.widths.size();
        CUdeviceptr weights = shared_.weights[layer], bias = shared_.biases[layer];
        CUdeviceptr from = values_[layer], to = values_[layer + 1];
        void* parameters[] = {&rows, &inputs, &outputs, &is_hidden, &weights, &bias, &from, &to};
        const unsigned height = static_cast<unsigned>(rows_), width = static_cast<unsigned>(outputs);
        const bool is_few = height <= few || width < tile;
        CUlaunchConfig config{};
        config.gridDimX = is_few ? (width + 7) / 8 : (width + tile - 1) / tile;
        config.gridDimY = is_few ? height : (height + tile - 1) / tile;
        config.blockDimX = 256;
        config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
        config.hStream = stream_;
        const CUfunction kernel = is_few ? shared_.few_rows : shared_.many_rows;
        check(cu_.cuLaunchKernelEx(&config, kernel, parameters, nullptr), "cuLaunchKernelEx");
    }

    void look_at(std::size_t row, std::size_t number) const {
        const std::size_t width = model_.outputs();
        for (std::size_t each = 0; each < width; ++each) {
            const float found = output_[row * width + each], expected = model_.answers[number * width + each];
            if (std::fabs(found - expected) <= tolerance * (1 + std::fabs(expected))) continue;
            std::fprintf(stderr, "row %zu has the answer %g, and not %g\n", number, found, expected);
            std::exit(1);
        }
    }

    const Driver& cu_;
    const Shared& shared_;
    const Model& model_;
    const std::size_t rows_;
    CUstream stream_ = nullptr;
    CUgraphExec graph_ = nullptr;
    std::vector<CUdeviceptr> values_;
    float* input_ = nullptr;
    float* output_ = nullptr;
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
    const Model model(arguments[3]);
    const bool as_graph = arguments[4] == std::string("graph");
    const std::size_t rows = static_cast<std::size_t>(std::atoi(arguments[5]));
    const std::size_t threads = static_cast<std::size_t>(std::atoi(arguments[6]));
    const auto length =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::atof(arguments[7])));

    Shared shared;
    const Driver& cu = shared.cu;
    CUmodule module = nullptr;
    check(cu.cuInit(0), "cuInit");
    check(cu.cuDevicePrimaryCtxRetain(&shared.context, 0), "cuDevicePrimaryCtxRetain");
    check(cu.cuCtxSetCurrent(shared.context), "cuCtxSetCurrent");
    check(cu.cuModuleLoadDataEx(&module, image.c_str(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
    check(cu.cuModuleGetFunction(&shared.few_rows, module, "few_rows"), "cuModuleGetFunction");
    check(cu.cuModuleGetFunction(&shared.many_rows, module, "many_rows"), "cuModuleGetFunction");
    for (const std::vector<float>& each : model.weights) shared.weights.push_back(copied(shared, each));
    for (const std::vector<float>& each : model.biases) shared.biases.push_back(copied(shared, each));

    std::atomic<std::size_t> ready{0};
    std::vector<std::thread> workers;
    std::vector<Clock::time_point> begins(threads), ends(threads);
    std::vector<std::size_t> batches(threads);
    std::vector<std::vector<double>> milliseconds(threads);
    for (std::size_t index = 0; index < threads; ++index) {
        workers.emplace_back([&, index] {
            Worker worker(shared, model, rows, as_graph);
            const std::size_t first = index * (model.rows.size() / model.inputs() / threads);
            worker.run(Clock::now() + std::min<Clock::duration>(warm, length), first, nullptr);
            ++ready;
            while (ready.load() < threads) std::this_thread::yield();
            begins[index] = Clock::now();
            batches[index] = worker.run(begins[index] + length, first, &milliseconds[index]);
            ends[index] = Clock::now();
        });
    }
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> seconds =
        *std::max_element(ends.begin(), ends.end()) - *std::min_element(begins.begin(), begins.end());
    std::size_t count = 0;
    for (const std::size_t each : batches) count += each * rows;
    std::printf("{\"rate\": %.3f, \"milliseconds\": [", static_cast<double>(count) / seconds.count());
    std::vector<double> all;
    for (const std::vector<double>& mine : milliseconds) all.insert(all.end(), mine.begin(), mine.end());
    std::sort(all.begin(), all.end());
    for (std::size_t percent = 1; percent < 100 && !all.empty(); ++percent)
        std::printf("%.6f, ", all[all.size() * percent / 100]);
    std::printf("%.6f]}\n", all.empty() ? 0 : all[all.size() * 999 / 1000]);
    return 0;
}
