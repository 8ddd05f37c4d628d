"""Captures in every thread, each of its own graph and all of a common one, beside what others do all the time."""

import gc
from types import SimpleNamespace

import numpy as np

from ftcuda import launch
from ftcuda.graph import GraphBuilder
from ftcuda.testing.hazard import Hazard


class Captures(Hazard):
    """Every graph does what its threads gave it, whatever others allocate, collect, load or capture meanwhile."""

    oracle = "counters that kernels and callbacks of the graphs count in, each as often as it was captured and launched"
    threads = 2

    def round(self, seed, random):
        builder = self.env.device.create_graph_builder().begin_building()
        return SimpleNamespace(builder=builder, common=self.word(), added=[], called=[])

    def word(self):
        buffer = self.env.pinned.allocate(4)
        array = np.frombuffer(buffer, np.int32)
        array[:] = 0
        return SimpleNamespace(buffer=buffer, array=array)

    def count_in(self, builder, word):
        launch(builder, self.env.one, self.env.increment, word.buffer)

    def add(self, builder, word, random, called):
        """Adds a kernel that counts, in one of the ways there are. How often it counts."""
        way = int(random.integers(4))
        if way == 0 and self.env.has_conditionals:
            bodies = builder.if_then(builder.create_condition(1)), builder.if_then(builder.create_condition(0))
            for body in bodies:
                body.begin_building()
                self.count_in(body, word)
                body.end_building()
        elif way == 1:
            parts = builder.split(2)
            self.count_in(parts[1], word)
            GraphBuilder.join(*parts)
        elif way == 2:
            builder.callback(lambda: called.append(None))
            return 0
        else:
            self.count_in(builder, word)
        return 1

    def act(self, state, index, random):
        stream = self.env.device.create_stream()
        for _ in range(2):
            called, word = [], self.word()
            kept = word.array
            builder = stream.create_graph_builder().begin_building()
            added, wanted = 0, 0
            for _ in range(4):
                counts = self.add(builder, word, random, called)
                added += counts
                wanted += counts == 0
                counts = self.add(state.builder, state.common, random, state.called)
                state.added.append(counts)
                self.keep_house(stream, random)
            word.buffer.close()
            graph = builder.end_building().complete()
            builder.close()
            for _ in range(2):
                graph.launch(stream)
            stream.sync()
            if (int(kept[0]), len(called)) != (2 * added, 2 * wanted):
                raise AssertionError(f"a graph counted {kept[0]} and called {len(called)} times in two launches: "
                                     f"it has {added} kernels and {wanted} callbacks")
            graph.close()
        stream.close()
        return 16

    def keep_house(self, stream, random):
        """What ends the captures of others, if nobody minds."""
        way = int(random.integers(5))
        if way == 0:
            self.env.device.allocate(64, stream=stream).close()
        elif way == 1:
            gc.collect(0)
        elif way == 2:
            self.env.new_code().get_kernel("increment")  # loads it
        elif way == 3:
            event = stream.record()
            event.sync()
            event.close()
        else:
            self.env.device.create_stream().close()

    def check(self, state):
        stream = self.env.stream
        graph = state.builder.end_building().complete()
        graph.launch(stream)
        stream.sync()
        seen = int(state.common.array[0]), len(state.called)
        wanted = sum(state.added), state.added.count(0)
        if seen != wanted:
            raise AssertionError(f"a common graph counted {seen[0]} and called {seen[1]} times instead of {wanted}")
        graph.close()
        state.builder.close()
