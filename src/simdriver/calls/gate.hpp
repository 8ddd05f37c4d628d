// The gate every exported function passes: it counts the call, applies the fault plan and refuses what cannot work.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

// One enumerator per line of entry_points.def.
enum class Call : unsigned {
#define FTCUDA_SIM_ENTRY(symbol, name, version, parameters) symbol,
#include "entry_points.def"
    count,
};

struct CallDescription {
    const char* symbol;
    const char* name;
    int version;
    void* address;
    bool takes_stream;  // as a parameter
};

const CallDescription& describe(Call call) noexcept;

// Success, or what the exported function is to answer at once.
CUresult enter(Call call);

// Around an exported function's body: a fault may hold the call when it is done and before it returns.
struct Passage {
    Passage() noexcept = default;
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;
    ~Passage();
};

// The declarations behind the exports: a line of the list without its definition does not link.
extern "C" {
#define FTCUDA_SIM_ENTRY(symbol, name, version, parameters) CUresult symbol parameters;
#include "entry_points.def"
}

}  // namespace ftcuda::sim

#ifdef _WIN32
#define FTCUDA_SIM_EXPORT extern "C" __declspec(dllexport)
#else
#define FTCUDA_SIM_EXPORT extern "C" __attribute__((visibility("default")))
#endif

#define FTCUDA_SIM_ENTER(symbol) \
    const Passage passage;       \
    if (const CUresult refused = enter(Call::symbol); refused != CUDA_SUCCESS) return refused
