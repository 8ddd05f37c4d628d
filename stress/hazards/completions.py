"""Loops that await streams and events, give up, and end, while others submit, record again and close."""

import asyncio
from types import SimpleNamespace

import numpy as np

from ftcuda import ClosedError, launch
from ftcuda.testing.hazard import Hazard, unless_closed


class Completions(Hazard):
    """Whoever awaited sees what was done before, in whatever loop; a wait that is given up disturbs no other one."""

    oracle = "the words that kernels stored, at the moment when an await comes back; the number of waits that came back"
    threads = 3
    TURNS = 4

    def round(self, seed, random):
        device = self.env.device
        streams = [device.create_stream() for _ in range(2)]
        if seed % 2:
            hash(streams[0].handle)  # others have it now, so that an event is asked for
        return SimpleNamespace(streams=streams, event=streams[0].record(), others=[])

    def act(self, state, index, random):
        if index % 3 == 2:
            for _ in range(self.TURNS):
                unless_closed(lambda: state.streams[1].record(state.event))
            unless_closed(state.event.close)
            if random.integers(2):
                state.streams[1].close()
            return self.TURNS
        return asyncio.run(self.loop(state, index % 3, random))

    async def loop(self, state, index, random):
        stream, host = state.streams[index], self.env.pinned.allocate(64)
        seen = np.frombuffer(host, np.int32)
        seen[:] = 0
        back = 0
        for turn in range(1, self.TURNS + 1):
            if not unless_closed(lambda turn=turn: launch(stream, self.env.one, self.env.append, host, turn)):
                break
            given_up = asyncio.ensure_future(self.wait(stream))
            event = asyncio.ensure_future(self.wait(state.event))
            if random.integers(2):
                await asyncio.sleep(0)
            given_up.cancel()
            if await self.wait(stream):
                back += 1
                if seen[0] != turn or seen[turn] != turn:
                    raise AssertionError(f"an await came back in turn {turn} before its work: {seen.tolist()}")
            await asyncio.wait([given_up, event])
            if event.exception() is not None:
                raise event.exception()
        if back == 0 and index == 0:
            raise AssertionError("no await of a stream that nobody closes came back")
        state.others.append(host)
        return self.TURNS

    async def wait(self, what):
        """Whether it could be awaited."""
        try:
            awaited = what.__await__()
        except ClosedError:
            return False
        return await Begun(awaited) is what

    def check(self, state):
        for stream in state.streams:
            stream.close()
        state.event.close()


class Begun:
    """A wait that has begun."""

    def __init__(self, iterator):
        self._iterator = iterator

    def __await__(self):
        return self._iterator
