// The driver's entry points: filled once by the loader, immutable afterwards, callable from any thread.
#pragma once

#include "host_function.hpp"
#include "status.hpp"

namespace ftcuda::driver {

using namespace abi;  // the signatures in entry_points.def are written in the driver's own type names

#ifdef FTCUDA_DEBUG_LOCKS
extern void (*before_call)() noexcept;  // the core's, which knows what the thread holds
#endif

// One driver function. Calling an absent one answers `Reason::absent`, and calling one in a host function
// `Reason::in_host_function`; neither touches anything.
template <Entry entry, class Signature>
class EntryPoint;

template <Entry entry, class... Parameters>
class EntryPoint<entry, CUresult(Parameters...)> {
public:
    using Function = CUresult (*)(Parameters...);

    explicit operator bool() const noexcept { return function_ != nullptr; }

    Status operator()(Parameters... parameters) const noexcept {
        if (function_ == nullptr) return Status(Reason::absent, entry);
        if (host_function::is_here() && !only_names(entry))
            return Status(Reason::in_host_function, entry, CUDA_ERROR_NOT_PERMITTED);
#ifdef FTCUDA_DEBUG_LOCKS
        if (before_call != nullptr && !only_names(entry)) before_call();
#endif
        return Status::from_driver(function_(parameters...), entry);
    }

    void bind(void* address) noexcept { function_ = reinterpret_cast<Function>(address); }
    void* address() const noexcept { return reinterpret_cast<void*>(function_); }

private:
    Function function_ = nullptr;
};

struct Table {
#define FTCUDA_ENTRY(symbol, name, version, need, pace, parameters) \
    EntryPoint<Entry::symbol, CUresult parameters> symbol;
#include "entry_points.def"
#undef FTCUDA_ENTRY
};

// Valid after load() succeeded. Whoever holds an object of ours got it from a thread that had loaded the driver, so no
// atomic is needed here: the hand-over of the object orders the loads.
extern Table cu;

}  // namespace ftcuda::driver
