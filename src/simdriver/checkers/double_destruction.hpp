// An oracle for what is destroyed, freed or released once too often. Under the lock.
#pragma once

#include "../state/handles.hpp"
#include "violations.hpp"

namespace ftcuda::sim::double_destruction {

// `what` was done to a thing that is not there: "memory freed that is not allocated".
inline void report(const std::string& what) { violation(what + " (twice, or foreign)"); }

inline void report_release(const std::string& what) { violation(what + " released more often than retained"); }

// Takes the object out of the table, or null and a violation. `what`: "stream destroyed".
template <class Object>
std::shared_ptr<Object> remove(Handles<Object>& handles, const void* handle, const char* what) {
    std::shared_ptr<Object> object = handles.remove(handle);
    if (!object) report(std::string(what) + " that does not exist");
    return object;
}

}  // namespace ftcuda::sim::double_destruction
