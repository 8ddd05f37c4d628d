"""Recording an event against destroying it, and waiting for it against recording it again."""

from types import SimpleNamespace

from stress.hazard import Hazard, unless_closed


class RecordsAgainstDestruction(Hazard):
    """A record or wait works on the event or says that it is closed; a wait is for one of the records."""

    def round(self, seed, random):
        device = self.env.device
        streams = [device.create_stream() for _ in range(3)]
        return SimpleNamespace(
            streams=streams, event=device.create_event({"timing_enabled": True}), destroy=random.random() < 0.5
        )

    def act(self, state, index, random):
        streams, event = state.streams, state.event
        if index == 0 and state.destroy:
            event.close()
            return 1
        actions = [
            lambda: streams[random.integers(3)].record(event),
            lambda: streams[random.integers(3)].wait(event),
            event.sync,
            lambda: event.is_done,
            lambda: self.env.elapsed(event),
        ]
        for _ in range(6):
            unless_closed(actions[random.integers(len(actions))])
        return 6

    def check(self, state):
        for stream in state.streams:
            stream.sync()
            stream.close()
        state.event.close()
