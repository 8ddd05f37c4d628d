"""A limit inside another one of the same size, and allocations that together are too large for it."""

from types import SimpleNamespace

from ftcuda import LimitingMemoryResource, OutOfMemoryError, SynchronousMemoryResource
from ftcuda.testing.hazard import Hazard

LIMIT = 256


class NestedLimits(Hazard):
    """Whom the outer limit admits the inner one admits too, and what was refused or freed counts nowhere."""

    oracle = "which of the two limits refused; the figures of both, during the round and after it"

    def round(self, seed, random):
        inner = LimitingMemoryResource(SynchronousMemoryResource(self.env.device), LIMIT)
        return SimpleNamespace(inner=inner, outer=LimitingMemoryResource(inner, LIMIT), made=[])

    def act(self, state, index, random):
        for _ in range(4):
            try:
                buffer = state.outer.allocate(int(random.integers(1, LIMIT)))
            except OutOfMemoryError as error:
                if repr(state.outer) not in str(error):
                    raise AssertionError("the inner limit refused what the outer one had admitted") from error
                continue
            state.made.append(buffer.size)
            used = state.outer.statistics.current_bytes
            if not buffer.size <= used <= LIMIT:
                raise AssertionError(f"{buffer.size} bytes are allocated, {used} are counted, {LIMIT} are allowed")
            buffer.close()
        return 8

    def check(self, state):
        for limiting in (state.outer, state.inner):
            figures = limiting.statistics
            if figures.current_bytes or figures.current_count:
                raise AssertionError(f"all was freed, and {limiting} has {figures}")
            if (figures.total_bytes, figures.total_count) != (sum(state.made), len(state.made)):
                raise AssertionError(f"{len(state.made)} allocations of {sum(state.made)} bytes, and {figures}")
