"""Another thread's allocations, frees and destructions while a stream is being captured."""

import ctypes
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

import ftcuda
from ftcuda.testing.hazard import Hazard

GLOBAL = 0  # CUstreamCaptureMode: the mode that minds the calls of all threads


class HousekeepingDuringCapture(Hazard):
    """What others allocate, free or destroy does not end the capture of this thread."""

    oracle = "how the driver answers the end of the capture; what the other thread's work wrote when its event is done"
    threads = 2

    def __init__(self, env):
        super().__init__(env)
        self._driver = ctypes.CDLL(ftcuda.driver_info().path)

    @contextmanager
    def captured(self, stream):
        """Captures for its block; the graph is thrown away."""
        handle, graph = ctypes.c_void_p(stream.handle), ctypes.c_void_p()
        begun = self._driver.cuStreamBeginCapture_v2(handle, GLOBAL)
        assert begun == 0, f"cuStreamBeginCapture answered {begun}"
        yield
        ended = self._driver.cuStreamEndCapture(handle, ctypes.byref(graph))
        assert ended == 0, f"cuStreamEndCapture answered {ended}: the capture was ended by another thread"
        assert self._driver.cuGraphDestroy(graph) == 0

    def round(self, seed, random):
        device = self.env.device
        return SimpleNamespace(stream=device.create_stream(), other=device.create_stream())

    def act(self, state, index, random):
        device, other = self.env.device, state.other
        if index == 0:
            with self.captured(state.stream):
                for _ in range(5):
                    self.env.counter.fill(1, stream=state.stream)
            return 5
        word = self.env.pinned.allocate(64)
        for value in range(4):
            buffer = device.allocate(64, stream=other)
            buffer.fill(value, stream=other)
            buffer.copy_to(word, stream=other)
            event = other.record()
            if event.is_done or other.is_done:
                self.expect(word, value)
            event.sync()
            self.expect(word, value)
            buffer.close()
            event.close()
            device.create_stream().close()
        return 36

    def expect(self, word, value):
        seen = set(np.frombuffer(word, np.uint8).tolist())
        if seen != {value}:
            raise AssertionError(f"the work before an event that is done wrote {value}, and {seen} is there")

    def check(self, state):
        state.other.sync()
        state.stream.close()
        state.other.close()
