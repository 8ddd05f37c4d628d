"""The first uses of one buffer in many streams, and its close."""

from types import SimpleNamespace

from stress.hazard import Hazard, unless_closed


class SharedBuffer(Hazard):
    """Every stream that used the buffer is waited for when it is freed, and let go afterwards."""

    def round(self, seed, random):
        before = self.live("stream")
        device = self.env.device
        streams = [device.create_stream() for _ in range(6)]
        buffer = device.allocate(64, stream=streams[0])
        for stream in streams[1:]:
            stream.wait(streams[0])
        return SimpleNamespace(before=before, streams=streams, buffer=buffer, last=int(random.integers(6)))

    def act(self, state, index, random):
        stream = state.streams[index % 6]
        for _ in range(3):
            unless_closed(lambda: state.buffer.fill(index & 255, stream=stream))
        if index == state.last:
            state.buffer.close()
        else:
            stream.close()
        return 4

    def check(self, state):
        state.buffer.close()
        for stream in state.streams:
            stream.close()
        left = self.live("stream")
        if left != state.before:
            raise AssertionError(f"the buffer keeps streams: {left} live, {state.before} before")
