"""Nodes of one graph, which each thread changes while all launch it."""

from types import SimpleNamespace

import numpy as np

from ftcuda.graph import GraphCompleteOptions, GraphDefinition
from ftcuda.testing.hazard import Hazard, unless_closed

NODES = 3
VALUES = 8
SWITCHED = 0  # the node that is disabled now and then


class GraphNodes(Hazard):
    """A change of a node is in all later launches, in every stream, and in none half."""

    oracle = "counters of each node: one for each launch, at a value that it was given, and at the last one in the end"
    threads = 2

    def round(self, seed, random):
        zero, counts = self.counters(), [self.counters() for _ in range(NODES)]
        definition = GraphDefinition(device=self.env.device)
        nodes = [definition.launch(self.env.one, self.env.tally, each.buffer, zero.buffer, 0) for each in counts]
        graph = definition.instantiate(GraphCompleteOptions(max_concurrency=int(random.integers(1, 4))))
        streams = [self.env.device.create_stream() for _ in range(3)]
        return SimpleNamespace(
            graph=graph, nodes=nodes, counts=counts, zero=zero, streams=streams, launched=[], last=[0] * NODES,
            given=[{0} for _ in range(NODES)], is_on=True,
        )  # fmt: skip

    def counters(self):
        buffer = self.env.pinned.allocate(4 * VALUES)
        array = np.frombuffer(buffer, np.int32)
        array[:] = 0
        return SimpleNamespace(buffer=buffer, array=array)

    def act(self, state, index, random):
        """The first threads have a node each, which nobody else changes."""
        launched = 0
        stream = state.streams[index % len(state.streams)]
        for _ in range(12):
            way = int(random.integers(6))
            if way == 0:
                state.graph.trim()
            elif way < 3 and index < NODES:
                self.change(state, index, int(random.integers(VALUES)))
            elif way == 3 and index == SWITCHED:
                node = state.graph[state.nodes[SWITCHED]]
                (node.disable if state.is_on else node.enable)()
                state.is_on = not state.is_on
            else:
                launched += unless_closed(lambda: state.graph.launch(stream))
        state.launched.append(launched)
        return 12

    def change(self, state, index, value):
        state.given[index].add(value)
        arguments = (state.counts[index].buffer, state.zero.buffer, value)
        state.graph[state.nodes[index]].update(config=self.env.one, kernel=self.env.tally, args=arguments)
        state.last[index] = value

    def check(self, state):
        self.env.device.sync()
        launched = sum(state.launched)
        for index, counts in enumerate(state.counts):
            found = counts.array.tolist()
            wrong = [value for value, count in enumerate(found) if count and value not in state.given[index]]
            total_is_wrong = sum(found) > launched if index == SWITCHED else sum(found) != launched
            if wrong or total_is_wrong:
                raise AssertionError(f"{launched} launches counted {found} in node {index}, given {state.given[index]}")
        self.check_last(state)
        state.graph.close()
        for stream in state.streams:
            stream.close()

    def check_last(self, state):
        """A launch in each stream, and so in each executable, has what each node was given last."""
        for counts in state.counts:
            counts.array[:] = 0
        for stream in state.streams:
            state.graph.launch(stream)
        self.env.device.sync()
        for index, counts in enumerate(state.counts):
            wanted = [0] * VALUES
            wanted[state.last[index]] = 0 if index == SWITCHED and not state.is_on else len(state.streams)
            if counts.array.tolist() != wanted:
                raise AssertionError(f"node {index} counted {counts.array.tolist()} in the end, not {wanted}")
