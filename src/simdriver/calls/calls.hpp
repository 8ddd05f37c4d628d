// Every exported function: what it is called and since when there is one.
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

// The declarations behind the exports: a line of the list without its definition does not link.
extern "C" {
#define FTCUDA_SIM_ENTRY(symbol, name, version, parameters) CUresult symbol parameters;
#include "entry_points.def"
}

}  // namespace ftcuda::sim
