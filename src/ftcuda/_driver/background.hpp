// Calls of the driver that no code of the user's asked for. A simulated driver tells them from the others: a fault that
// a test plans is not meant for them, and no schedule of a test has a place for them.
//
// A library that does so exports ftcuda_background_may_go_on.
#pragma once

namespace ftcuda::driver {

class Library;

namespace background {

void find(const Library& library);

// By a thread that does what nobody waits for, before each of its calls. False: not now; ask again later.
bool may_go_on() noexcept;

}  // namespace background
}  // namespace ftcuda::driver
