// Which driver and device are simulated. Read once from the environment, constant afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ftcuda::sim {

struct Profile {
    const char* name;
    int driver_version;  // as cuDriverGetVersion: 1000 * major + 10 * minor
    int ptx_version;     // newest PTX understood: 10 * major + minor
    int attribute_end;   // the first device attribute number that the driver does not know
    bool memory_pools;
    bool host_pools;
    bool concurrent_managed;
    bool tcc;
};

// Null when FTCUDA_SIM_PROFILE names none; a message then says which there are.
const Profile* profile() noexcept;

int device_count() noexcept;             // FTCUDA_SIM_DEVICES, 1
int compute_capability() noexcept;       // FTCUDA_SIM_CC, 90
std::uint64_t device_memory() noexcept;  // FTCUDA_SIM_MEMORY in bytes, 4 GiB

// Whether there is such a device.
bool valid_device(int device) noexcept;

// The value of a device attribute, or false for a number this driver does not know.
bool device_attribute(int number, int& value) noexcept;

}  // namespace ftcuda::sim
