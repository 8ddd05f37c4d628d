// Functions of the host's that streams and graphs call.
#pragma once

#include "../state/operation.hpp"
#include "../state/driver_state.hpp"

namespace ftcuda::sim {

inline Work prepare_host(const HostOperation& operation) {
    Work work;
    work.run = [operation] {
        operation.function(operation.user_data);
        return CUDA_SUCCESS;
    };
    return work;
}

}  // namespace ftcuda::sim
