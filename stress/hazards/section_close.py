"""The close of a stream while one thread is in its exclusive section and others wait for it."""

from types import SimpleNamespace

from ftcuda import ClosedError
from ftcuda.testing.schedule import Event
from stress.hazard import Hazard, unless_closed


class CloseDuringASection(Hazard):
    """Those who wait for the section are told that the stream is closed, at once, and not when the section ends."""

    threads = 2

    def round(self, seed, random):
        return SimpleNamespace(stream=self.env.device.create_stream(), inside=Event(), refused=Event())

    def act(self, state, index, random):
        if index == 0:
            with state.stream.exclusive():
                state.inside.set()
                for _ in range(int(random.integers(30))):  # the others come to wait meanwhile
                    state.stream.is_done  # noqa: B018
                state.stream.close()
                if not state.refused.wait(20):
                    raise AssertionError("nobody who waited for the section was woken by the close")
            return 1
        state.inside.wait(20)
        try:
            while True:
                state.stream.record().close()
        except ClosedError:
            state.refused.set()
        unless_closed(state.stream.sync)
        return 2
