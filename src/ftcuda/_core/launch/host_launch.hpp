// Functions of the host's in the order of a stream: what comes behind waits until they return.
#pragma once

#include "../completion/deferred_release.hpp"
#include "../stream/stream.hpp"

namespace ftcuda::core {

// `retention`: what must live until the function has returned, or, where it is captured, as long as the graph.
Status host_launch(Stream& stream, abi::CUhostFn function, void* user_data, deferred_release::Retention retention);

}  // namespace ftcuda::core
