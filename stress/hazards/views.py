"""Views of pinned memory against its close."""

from types import SimpleNamespace

from ftcuda import ClosedError
from ftcuda.testing.hazard import Hazard


class Views(Hazard):
    """While a view is exported the memory stays, whatever close says."""

    oracle = "what each thread reads back of its own byte, also when others have closed meanwhile"

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
                    value = int(random.integers(256))
                    view[index] = value  # each thread its own byte
                    closed = state.buffer.is_closed
                    if view[index] != value:
                        raise AssertionError(f"wrote {value} and read {view[index]}, of a {closed=} buffer")
                    view.release()
            except (BufferError, ClosedError):
                continue
        return 10

    def check(self, state):
        state.buffer.close()
