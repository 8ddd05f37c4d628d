"""Views of pinned memory against its close."""

from types import SimpleNamespace

from ftcuda import ClosedError
from stress.hazard import Hazard


class Views(Hazard):
    """While a view is exported the memory stays: close says that it is in use."""

    def round(self, seed, random):
        return SimpleNamespace(buffer=self.env.pinned.allocate(4096), closed=False)

    def act(self, state, index, random):
        for _ in range(10):
            try:
                if index == 0:
                    state.buffer.close()
                    state.closed = True
                else:
                    view = memoryview(state.buffer)
                    view[index] = int(random.integers(256))  # each thread its own byte
                    if state.buffer.is_closed:
                        raise AssertionError("closed under a view")
                    view.release()
            except (BufferError, ClosedError):
                continue
        return 10

    def check(self, state):
        state.buffer.close()
