"""Two readers of a buffer in streams of their own, and one who frees it."""

from types import SimpleNamespace

import numpy as np

from ftcuda.testing.hazard import Hazard, unless_closed


class ReadersAndAFree(Hazard):
    """Whoever managed to submit a read before the close reads the buffer's contents, not another's."""

    oracle = "what each reader read that was not refused"
    threads = 3

    def round(self, seed, random):
        device = self.env.device
        streams = [device.create_stream() for _ in range(2)]
        buffer = device.allocate(256, stream=streams[0])
        buffer.fill(seed & 255, stream=streams[0])
        streams[1].wait(streams[0])
        return SimpleNamespace(value=seed & 255, streams=streams, buffer=buffer, copies=[])

    def act(self, state, index, random):
        if index % 3 == 2:
            unless_closed(state.buffer.close)
            # What the freed memory may become: without the wait for the readers they would see this.
            new = self.env.device.allocate(256, stream=state.streams[0])
            new.fill(~state.value & 255, stream=state.streams[0])
            new.close()
            return 2
        stream = state.streams[index % 3]
        host = self.env.pinned.allocate(256)
        np.frombuffer(host, np.uint8)[:] = state.value ^ 1  # nothing that a copy could bring
        if unless_closed(lambda: state.buffer.copy_to(host, stream=stream)):
            state.copies.append((host, stream))
        return 1

    def check(self, state):
        for host, stream in state.copies:
            stream.sync()
            seen = np.frombuffer(host, np.uint8)
            if not (seen == state.value).all():
                raise AssertionError(
                    f"a reader saw {set(seen.tolist())} instead of {state.value}: the buffer was freed under it"
                )
        state.buffer.close()
        for stream in state.streams:
            stream.close()
