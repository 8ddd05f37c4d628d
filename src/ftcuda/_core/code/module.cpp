#include "module.hpp"

#include "../../_driver/table.hpp"
#include "../completion/context_wait.hpp"
#include "../device/capture_mode.hpp"
#include "../device/deferred_errors.hpp"
#include "../device/process.hpp"

#include <cstring>

namespace ftcuda::core {

using driver::cu;
using namespace abi;

namespace {

constexpr std::size_t log_capacity = 16 * 1024;

// By ordinal, whether the driver takes cubins: each is stored after it was asked, always as the same. Relaxed: it
// stands for nothing else.
enum class Answer : unsigned char { unknown, no, yes };
std::array<std::atomic<Answer>, Device::limit> cubins_taken{};

}  // namespace

Ref<Module> Module::make(std::string image, std::string signatures) {
    return Ref<Module>::adopt(new Module(std::move(image), std::move(signatures)));
}

Module::~Module() {
    if (!process::may_destroy()) return;
    const Lock lock(mutex_);  // for the annotations' sake: nobody else has a reference any more
    for (const Slot& slot : slots_) {
        if (slot.progress != Progress::loaded) continue;
        Context& context = *slot.context;
        retire(context, [&context, cu_module = slot.cu_module] {
            deferred_errors::add(context.observe(cu.cuModuleUnload(cu_module)), "unload", "module");
        });
    }
}

Status Module::load_image(Context& context, CUmodule& cu_module, std::string& log) noexcept {
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    const Status status = context.observe(cu.cuModuleLoadDataEx(&cu_module, image_.c_str(), 2, options, values));
    log.resize(status.ok() ? 0 : std::strlen(log.c_str()));
    return status;
}

Status Module::load(Context& context, CUmodule& cu_module, std::string& log) {
    const std::size_t ordinal = static_cast<std::size_t>(context.device().ordinal());
    {
        const Lock lock(mutex_);
        Slot& slot = slots_[ordinal];
        while (slot.progress == Progress::loading) loaded_.wait(mutex_);
        if (slot.progress == Progress::loaded) {
            cu_module = slot.cu_module;
            return {};
        }
        log.assign(log_capacity, '\0');  // here, because nothing may be thrown while others wait for this thread
        slot.progress = Progress::loading;
    }
    const Status status = load_image(context, cu_module, log);
    {
        const Lock lock(mutex_);
        // After a failure the next thread tries again: it may have been memory that was short.
        slots_[ordinal] = status.ok() ? Slot{Progress::loaded, cu_module, &context} : Slot{};
        if (status.ok() && home_ == nullptr) home_ = &context;
        loaded_.notify_all();
    }
    return status;
}

bool Module::accepts_cubins(Context& context, bool& is_known) noexcept {
    const Answer answer =
        cubins_taken[static_cast<std::size_t>(context.device().ordinal())].load(std::memory_order_relaxed);
    is_known = answer != Answer::unknown;
    return answer == Answer::yes;
}

Status Module::offer_cubin(Context& context, std::string cubin, bool& is_taken) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    const Ref<Module> offered = make(std::move(cubin), "");
    CUmodule cu_module = nullptr;
    std::string log;
    const Status status = offered->load(context, cu_module, log);
    is_taken = status.ok();
    // Others say nothing about cubins: memory that is short, a context that ended.
    if (!is_taken && !status.is(CUDA_ERROR_NO_BINARY_FOR_GPU) && !status.is(CUDA_ERROR_INVALID_IMAGE)) return status;
    cubins_taken[static_cast<std::size_t>(context.device().ordinal())].store(is_taken ? Answer::yes : Answer::no,
                                                                             std::memory_order_relaxed);
    return {};
}

Context& Module::home() {
    const Lock lock(mutex_);
    return *home_;
}

Status Module::function(Context& context, const char* name, CUfunction& function, std::string& log) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    CUmodule cu_module = nullptr;
    if (const Status status = load(context, cu_module, log); !status.ok()) return status;
    const Status status = context.observe(cu.cuModuleGetFunction(&function, cu_module, name));
    if (status.is(CUDA_ERROR_NOT_FOUND)) return Reason::not_found;
    // With lazy loading the first launch would load the code under the context's lock and stall every other thread.
    if (status.ok() && cu.cuFuncLoad) return context.observe(cu.cuFuncLoad(function));
    return status;
}

Status Module::global(Context& context, const char* name, CUdeviceptr& pointer, std::size_t& bytes, std::string& log) {
    const ContextScope scope(context);
    if (!scope.status().ok()) return scope.status();
    const RelaxedCapture relaxed;
    CUmodule cu_module = nullptr;
    if (const Status status = load(context, cu_module, log); !status.ok()) return status;
    const Status status = context.observe(cu.cuModuleGetGlobal_v2(&pointer, &bytes, cu_module, name));
    return status.is(CUDA_ERROR_NOT_FOUND) ? Status(Reason::not_found) : status;
}

}  // namespace ftcuda::core
