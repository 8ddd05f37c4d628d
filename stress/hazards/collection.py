"""Objects in reference cycles, collected by whichever thread happens to, with or without a context."""

import gc
import threading

from stress.hazard import Hazard


class Collection(Hazard):
    """A collection destroys streams, events and buffers on threads that never used CUDA."""

    unscheduled = "it starts threads of its own"

    def round(self, seed, random):
        return self.env.device.create_stream()

    def act(self, state, index, random):
        device = self.env.device
        cycle = [device.allocate(1000, stream=state), device.create_event(), state.record(), device.create_stream()]
        cycle.append(cycle)
        del cycle
        if random.random() < 0.2:
            collector = threading.Thread(target=gc.collect)
            collector.start()
            collector.join()
        return 4

    def check(self, state):
        gc.collect()
        state.sync()
        state.close()
