"""Every pair of calls in the promise table on one object, half of the threads each."""

from types import SimpleNamespace

import ftcuda
from ftcuda.graph import GraphBuilder
from ftcuda.testing.hazard import Hazard
from stress.promise import read


def stays_open(it):
    """Whether close() does not close it: a default stream, or a resource that has nothing to close."""
    if isinstance(it, (ftcuda.ExternalMemoryResource, ftcuda.GraphMemoryResource)):
        return True
    return isinstance(it, ftcuda.Stream) and it in (ftcuda.LEGACY_DEFAULT_STREAM, ftcuda.PER_THREAD_DEFAULT_STREAM)


class Pairs(Hazard):
    """Each racing call completes; beside a close it may say that the object is closed. Nothing else happens."""

    oracle = "what each call raises, against the promise table; what was closed says so"
    threads = 2
    is_scheduled = True  # whether these are the objects that a schedule knows all threads of

    def __init__(self, env):
        super().__init__(env)
        subjects = [each for each in read() if each.unscheduled != self.is_scheduled]
        self._pairs = [pair for subject in subjects for pair in subject.pairs()]
        self._tried = set()

    def round(self, seed, random):
        number = seed % len(self._pairs)
        self._tried.add(number)
        maker, first, second = self._pairs[number]
        names = {"env": self.env, "ftcuda": ftcuda, "launch": ftcuda.launch}
        names["it"] = eval(maker, names)
        self.env.stream.sync()  # memory of a stream is there in its order, and calls in other streams are tried too
        allowed = (*first.may_raise, *second.may_raise)
        if first.closes or second.closes:
            allowed += (ftcuda.ClosedError,)
        return SimpleNamespace(
            names=names,
            calls=(first, second),
            allowed=allowed,
            title=f"{maker.co_filename}: {first.name} against {second.name}",
        )

    def act(self, state, index, random):
        call = state.calls[index % 2]
        times = 1 if call.closes else int(random.integers(1, 6))
        for _ in range(int(random.integers(40))):  # a close comes a little before, amid or after the other's calls
            pass
        for _ in range(times):
            try:
                eval(call.code, state.names)
            except state.allowed:
                pass
            except Exception as error:
                error.add_note(state.title)
                raise
        return times

    def check(self, state):
        it = state.names["it"]
        if isinstance(it, GraphBuilder):
            self.check_builder(state, it)
        if hasattr(it, "close"):
            it.close()
            if hasattr(it, "is_closed") and not it.is_closed and not stays_open(it):
                raise AssertionError(f"{state.title}: closed, and open")

    def check_builder(self, state, it):
        """What was built is a graph, which runs, or there is none, and the builder says so."""
        if it.is_building or it.is_closed:
            return
        try:
            graph = it.complete()
        except RuntimeError as error:
            if "no graph yet" not in str(error) and "a condition without" not in str(error):
                raise AssertionError(f"{state.title}: neither a graph nor none: {error}") from None
            return
        graph.launch(self.env.stream)
        self.env.stream.sync()
        graph.close()

    def coverage(self):
        return len(self._tried), len(self._pairs)
