"""What the tests of waits have in common: work that goes on when a test says so."""

from contextlib import suppress

import numpy as np

from ftcuda import LaunchConfig, LegacyPinnedMemoryResource, launch

ONE = LaunchConfig(grid=1, block=1)


class Gates:
    """Kernels that wait for the host. All are opened at the end."""

    def __init__(self, code):
        self._hold = code.get_kernel("hold")
        self._store = code.get_kernel("store")
        self._resource = LegacyPinnedMemoryResource()
        self._made = []

    def word(self):
        """A pinned buffer and a view of its one word, which is 0."""
        buffer = self._resource.allocate(4)
        view = np.frombuffer(buffer, np.int32)
        view[0] = 0
        return buffer, view

    def shut(self, stream):
        """Work of `stream` that lasts until what is returned is called."""
        buffer, view = self.word()
        self._made.append(view)
        launch(stream, ONE, self._hold, buffer)

        def open_gate():
            view[0] = 1

        return open_gate

    def store(self, stream, buffer, value):
        launch(stream, ONE, self._store, buffer, value)

    def close(self):
        for view in self._made:
            view[0] = 1
        self._made.clear()


def cancelled(task):
    """Whether it was, now that it is over."""
    with suppress(BaseException):
        task.result()
    return task.cancelled()
