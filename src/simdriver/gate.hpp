// The gate every exported function passes: it counts the call, applies the fault plan and refuses what cannot work.
#pragma once

#include "world.hpp"

namespace ftcuda::sim {

// One enumerator per line of entry_points.def.
enum class Call : unsigned {
#define FTCUDA_ENTRY(symbol, name, version, need, pace, parameters) symbol,
#include "../ftcuda/_driver/entry_points.def"
#undef FTCUDA_ENTRY
    count,
};

struct CallDescription {
    const char* symbol;
    const char* name;
    int version;
    void* address;
};

const CallDescription& describe(Call call) noexcept;

// Success, or what the exported function is to answer at once.
CUresult enter(Call call);

// The declarations behind the exports: a line of the list without its definition does not link.
extern "C" {
#define FTCUDA_ENTRY(symbol, name, version, need, pace, parameters) CUresult symbol parameters;
#include "../ftcuda/_driver/entry_points.def"
#undef FTCUDA_ENTRY
}

}  // namespace ftcuda::sim

#ifdef _WIN32
#define FTCUDA_SIM_EXPORT extern "C" __declspec(dllexport)
#else
#define FTCUDA_SIM_EXPORT extern "C" __attribute__((visibility("default")))
#endif

#define FTCUDA_SIM_ENTER(symbol)                                                                     \
    if (const CUresult refused = enter(Call::symbol); refused != CUDA_SUCCESS) return refused
