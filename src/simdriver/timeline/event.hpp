// Events by their handles. Under the lock.
#pragma once

#include "../state/driver_state.hpp"

namespace ftcuda::sim {

CUresult find_event(CUevent handle, std::shared_ptr<Event>& event);

// What records the event where it is submitted; the event's point is the one behind it.
Work prepare_record(Event& event);

}  // namespace ftcuda::sim
