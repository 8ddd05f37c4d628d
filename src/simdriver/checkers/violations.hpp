// What correct programs never do is counted and described. The oracles beside this file say what that is, each in a
// file of its own.
#pragma once

#include <string>

namespace ftcuda::sim {

void violation(const std::string& text);  // under the lock

}  // namespace ftcuda::sim
