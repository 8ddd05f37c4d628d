#include "calls.hpp"

#include <type_traits>

namespace ftcuda::sim {

namespace {

template <class... Parameters>
constexpr bool takes_stream(CUresult (*)(Parameters...)) noexcept {
    return (std::is_same_v<Parameters, CUstream> || ...);
}

const CallDescription calls[] = {
#define FTCUDA_SIM_ENTRY(symbol, name, version, parameters) \
    {#symbol, name, version, reinterpret_cast<void*>(&symbol), takes_stream(&symbol)},
#include "entry_points.def"
};

}  // namespace

const CallDescription& describe(Call call) noexcept { return calls[static_cast<unsigned>(call)]; }

}  // namespace ftcuda::sim
