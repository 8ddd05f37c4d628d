// The gate every exported function passes: it counts the call, applies the fault plan and refuses what cannot work.
#pragma once

#include "calls.hpp"

namespace ftcuda::sim {

// Every call is refused in the child of a fork from then on.
void refuse_after_fork() noexcept;
bool is_forked() noexcept;

// Success, or what the exported function is to answer at once.
CUresult enter(Call call);

// Around the program's destructor of a user object, which may not call the driver.
struct InDestructor {
    InDestructor() noexcept;
    InDestructor(const InDestructor&) = delete;
    InDestructor& operator=(const InDestructor&) = delete;
    ~InDestructor();
};

// Around an exported function's body: a fault may hold the call when it is done and before it returns.
struct Passage {
    Passage() noexcept = default;
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;
    ~Passage();
};

}  // namespace ftcuda::sim

#ifdef _WIN32
#define FTCUDA_SIM_EXPORT extern "C" __declspec(dllexport)
#else
#define FTCUDA_SIM_EXPORT extern "C" __attribute__((visibility("default")))
#endif

#define FTCUDA_SIM_ENTER(symbol) \
    const Passage passage;       \
    if (const CUresult refused = enter(Call::symbol); refused != CUDA_SUCCESS) return refused
