// Executables by their handles. Under the lock.
#pragma once

#include "../state/graph.hpp"
#include "../timeline/ended_objects.hpp"

namespace ftcuda::sim {

CUresult find_executable(CUgraphExec handle, std::shared_ptr<Executable>& executable);

// Runs it behind what is in the stream, and behind its launches before; or the driver's error.
CUresult launch(const std::shared_ptr<Executable>& executable, Stream& stream);

// Lets go of what nobody needs any more, once no launch is in flight.
void end_idle(Executable& executable, EndedObjects& ended);

}  // namespace ftcuda::sim
