"""Threads that make objects and end before the others are done with them."""

import queue
import threading
from types import SimpleNamespace

from ftcuda import launch
from ftcuda.testing.hazard import Hazard


class CreatorsThatExit(Hazard):
    """What a thread made works, and is destroyed, after the thread is gone."""

    oracle = "what a launch wrote, in a stream and a buffer whose maker is gone"
    unscheduled = "it starts threads of its own"

    def round(self, seed, random):
        return SimpleNamespace(made=queue.SimpleQueue(), used=[])

    def act(self, state, index, random):
        def create():
            stream = self.env.device.create_stream()
            counter = self.env.device.allocate(4, stream=stream)
            counter.fill(0, stream=stream)
            state.made.put((stream, counter))

        creator = threading.Thread(target=create)
        creator.start()
        creator.join()
        stream, counter = state.made.get()  # perhaps another's
        launch(stream, self.env.one, self.env.increment, counter)
        if self.env.read_int(counter, stream) != 1:
            raise AssertionError("work on the objects of a thread that has ended went wrong")
        return 4
