// Streams by their handles. Under the lock.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

// A null handle is the legacy stream; 1 and 2 are the tokens.
CUresult find_stream(CUstream handle, std::shared_ptr<Stream>& stream);

}  // namespace ftcuda::sim
