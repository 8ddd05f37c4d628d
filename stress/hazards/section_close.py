"""The close of a stream while one thread is in its exclusive section, or about to be, and others wait for it."""

from types import SimpleNamespace

from ftcuda import ClosedError
from ftcuda.testing.hazard import Hazard, unless_closed
from ftcuda.testing.schedule import Event


class CloseDuringASection(Hazard):
    """Those who wait for the section are told that the stream is closed, at once, and not when the section ends."""

    oracle = "who waits is told within the section; nothing can be submitted afterwards"
    threads = 2

    def round(self, seed, random):
        return SimpleNamespace(stream=self.env.device.create_stream(), inside=Event(), refused=Event())

    def act(self, state, index, random):
        if index == 0 and random.integers(2):  # outside of it, while a section waits for the submissions before it
            state.inside.set()
            for _ in range(int(random.integers(30))):
                seen = state.stream.is_done
                if seen not in (True, False):
                    raise AssertionError(f"asked whether it is done, a stream says {seen}")
            state.stream.close()
            return 1
        if index == 0:
            with state.stream.exclusive():
                state.inside.set()
                for _ in range(int(random.integers(30))):  # the others come to wait meanwhile
                    if not state.stream.is_done:
                        raise AssertionError("another thread's work came into the section")
                state.stream.close()
                if not state.refused.wait(20):
                    raise AssertionError("nobody who waited for the section was woken by the close")
            return 1
        state.inside.wait(20)
        try:
            while True:
                if index % 2:
                    state.stream.record().close()
                else:
                    self.env.inside(state.stream.exclusive())
        except ClosedError:
            state.refused.set()
        if unless_closed(state.stream.sync):
            raise AssertionError("a stream that was closed can be waited for")
        return 2
