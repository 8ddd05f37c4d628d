// An oracle for handles that lead nowhere: what they led to is gone, or was another program's. Under the lock.
#pragma once

#include "../state/handles.hpp"
#include "violations.hpp"

namespace ftcuda::sim::stale_handles {

// The object behind a handle of that `kind`, or null and a violation.
template <class Object>
std::shared_ptr<Object> find(const Handles<Object>& handles, const void* handle, const char* kind) {
    std::shared_ptr<Object> object = handles.find(handle);
    if (!object) violation(std::string("stale or foreign ") + kind + " handle");
    return object;
}

}  // namespace ftcuda::sim::stale_handles
