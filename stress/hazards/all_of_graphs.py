"""All that threads do with graphs, to the same few graphs at once."""

from types import SimpleNamespace

import numpy as np

from ftcuda import LegacyPinnedMemoryResource, StatisticsMemoryResource, launch
from ftcuda.graph import GraphBuilder, GraphCompleteOptions, GraphDefinition, Parameter
from ftcuda.testing.hazard import Hazard, unless_closed

PLACES = 2  # of graphs of each kind, each of which is replaced now and then
STREAMS = 3
VALUES = 4
PARTS = 3  # of a graph with parameters, and as many kernels that are told where to count
SPLITS = 4  # builders of two parts
TURNS = 12


class ArrayOfOthers:
    """What a launch keeps until it is done, by an event behind it."""

    def __init__(self, counters):
        self.counters = counters
        self.__cuda_array_interface__ = {
            "shape": (VALUES,), "typestr": "<i4", "data": (int(counters.buffer.handle), False), "version": 3,
        }  # fmt: skip


class AllOfGraphs(Hazard):
    """Each launch that returned ran once and whole, in its own stream, whoever captures, changes, replaces or closes
    graphs, and orders streams, meanwhile; and what was added to a part of a builder is in its graph.
    """

    oracle = (
        "counters of each thread for each stream, and of each node: what each launch that returned should have "
        "counted, at values that a node was given, the same in all streams at the end; no memory of a graph is left"
    )
    threads = 2

    def round(self, seed, random):
        resource = StatisticsMemoryResource(LegacyPinnedMemoryResource())
        state = SimpleNamespace(
            resource=resource, streams=[self.env.device.create_stream() for _ in range(STREAMS)], seen=[],
            embedded=self.counters(resource), all_nodes=[], zero=self.counters(resource),
        )  # fmt: skip
        state.child = self.env.device.create_graph_builder().begin_building()
        launch(state.child, self.env.one, self.env.tally, state.embedded.buffer, state.zero.buffer, 0)
        state.child.end_building()
        state.splits = [self.new_split(state) for _ in range(SPLITS)]
        state.bound = [self.new_bound(state, random) for _ in range(PLACES)]
        state.nodes = [self.new_nodes(state, random) for _ in range(PLACES)]
        return state

    def counters(self, resource):
        buffer = resource.allocate(4 * VALUES)
        array = np.frombuffer(buffer, np.int32)
        array[:] = 0
        return SimpleNamespace(buffer=buffer, array=array)

    def new_split(self, state):
        """A builder of two parts, to the second of which threads add until it is joined."""
        child = self.env.device.create_graph_builder().begin_building()
        counts = self.counters(state.resource)
        launch(child, self.env.one, self.env.tally, counts.buffer, state.zero.buffer, 0)
        child.end_building()
        first, second = self.env.device.create_graph_builder().begin_building().split(2)
        return SimpleNamespace(first=first, second=second, child=child, array=counts.array, embedded=[])

    def new_bound(self, state, random):
        """A graph that counts in as many branches where a launch says, and once more in a graph within it."""
        example = self.counters(self.env.pinned)
        builder = self.env.device.create_graph_builder().begin_building()
        parts = builder.split(PARTS)
        for part in parts:
            counts, value = Parameter("counts", example.buffer), Parameter("value", 0)
            launch(part, self.env.one, self.env.tally, counts, state.zero.buffer, value)
        builder = GraphBuilder.join(*parts)
        builder.embed(state.child)
        graph = builder.end_building().complete(GraphCompleteOptions(max_concurrency=int(random.integers(1, 4))))
        builder.close()
        return graph.bind()

    def new_nodes(self, state, random):
        """A graph of two nodes, of which the second is left out now and then, and another one that it may become."""
        counts = [self.counters(state.resource) for _ in range(2)]
        kept = SimpleNamespace(arrays=[each.array for each in counts], launched=[], given={0, VALUES - 1})
        kept.definition, kept.nodes = self.new_definition(state, counts, 0)
        kept.other, _ = self.new_definition(state, counts, VALUES - 1)
        kept.graph = kept.definition.instantiate(GraphCompleteOptions(max_concurrency=int(random.integers(1, 4))))
        kept.counts = counts
        state.all_nodes.append(kept)
        return kept

    def new_definition(self, state, counts, value):
        definition = GraphDefinition(device=self.env.device)
        return definition, [
            definition.launch(self.env.one, self.env.tally, each.buffer, state.zero.buffer, value) for each in counts
        ]

    def act(self, state, index, random):
        mine = SimpleNamespace(
            bound=[self.counters(self.env.pinned) for _ in state.streams], wanted=np.zeros((STREAMS, VALUES), int),
            plain=[self.counters(self.env.pinned) for _ in state.streams], launched=[0] * STREAMS,
        )  # fmt: skip
        for _ in range(TURNS):
            place, where = int(random.integers(PLACES)), int(random.integers(STREAMS))
            way = int(random.integers(14))
            if way < 3:
                value = int(random.integers(VALUES))
                mine.wanted[where, value] += self.launch_bound(state, place, where, mine.bound[where], value)
            elif way < 6:
                nodes = state.nodes[place]
                if unless_closed(lambda nodes=nodes, where=where: nodes.graph.launch(state.streams[where])):
                    nodes.launched.append(1)
            elif way < 8:
                arguments = ArrayOfOthers(mine.plain[where]), state.zero.buffer, 0
                launch(state.streams[where], self.env.one, self.env.tally, *arguments)
                mine.launched[where] += 1
                state.streams[where].wait(state.streams[int(random.integers(STREAMS))])
            elif way < 12:
                self.interfere(state, place, random)
            else:
                self.build(state.splits[int(random.integers(SPLITS))], joins=way == 12)
        state.seen.append(mine)
        return TURNS

    def launch_bound(self, state, place, where, counters, value):
        bound = state.bound[place]
        return unless_closed(lambda: bound.launch(state.streams[where], counts=counters.buffer, value=value))

    def build(self, split, joins):
        if joins:
            unless_closed(lambda: GraphBuilder.join(split.first, split.second))
        elif unless_closed(lambda: split.second.embed(split.child)):
            split.embedded.append(1)

    def interfere(self, state, place, random):
        way = int(random.integers(6))
        nodes = state.nodes[place]
        if way == 0:
            graphs, made = state.bound, self.new_bound(state, random)
            before, graphs[place] = graphs[place], made
            before.graph.close()
        elif way == 1:
            state.nodes[place] = self.new_nodes(state, random)
            nodes.graph.close()
        elif way == 2:
            unless_closed((nodes if random.integers(2) else state.bound[place]).graph.trim)
        elif way == 3:
            unless_closed(lambda: nodes.graph.update(nodes.other))
        else:
            self.change(state, nodes, way == 4, random)

    def change(self, state, nodes, switches, random):
        """Nobody can any more once the graph was updated."""
        first, second = (nodes.graph[node] for node in nodes.nodes)
        value = int(random.integers(VALUES))
        arguments = nodes.counts[0].buffer, state.zero.buffer, value
        calls = [second.disable, second.enable]
        if not switches:
            nodes.given.add(value)
            calls = [lambda: first.update(config=self.env.one, kernel=self.env.tally, args=arguments)]
        try:
            unless_closed(calls[int(random.integers(len(calls)))])
        except RuntimeError as error:
            if "update()" not in str(error):
                raise

    def check(self, state):
        for stream in state.streams:
            stream.sync()
        for mine in state.seen:
            found = [each.array.tolist() for each in mine.bound]
            if found != (PARTS * mine.wanted).tolist():
                raise AssertionError(f"{mine.wanted.tolist()} launches in each stream counted {found} in {PARTS} parts")
            plain = [int(each.array[0]) for each in mine.plain]
            if plain != mine.launched:
                raise AssertionError(f"{mine.launched} kernels in each stream counted {plain}")
        launched = sum(int(mine.wanted.sum()) for mine in state.seen)
        if state.embedded.array[0] != launched:
            raise AssertionError(f"{launched} launches counted {state.embedded.array[0]} in the graph within")
        for nodes in state.all_nodes:
            self.check_nodes(nodes)
            if any(nodes is each for each in state.nodes):
                self.check_last(state, nodes)
        self.check_splits(state)
        self.check_memory(state)

    def check_splits(self, state):
        for split in state.splits:
            self.build(split, joins=True)
            graph = split.first.end_building().complete()
            graph.launch(state.streams[0])
            state.streams[0].sync()
            if split.array[0] != len(split.embedded):
                raise AssertionError(f"{len(split.embedded)} graphs within one counted {split.array[0]}")
            graph.close()
            split.first.close()
            split.child.close()

    def check_nodes(self, nodes):
        first, second = (array.tolist() for array in nodes.arrays)
        wrong = [value for value, count in enumerate(first) if count and value not in nodes.given]
        if wrong or sum(first) != len(nodes.launched) or sum(second) > len(nodes.launched):
            raise AssertionError(f"{len(nodes.launched)} launches counted {first} and {second}, given {nodes.given}")

    def check_last(self, state, nodes):
        """Nobody changes anything any more: a launch in one stream does what it does in any other."""
        seen = []
        for stream in state.streams:
            before = [array.copy() for array in nodes.arrays]
            nodes.graph.launch(stream)
            stream.sync()
            seen.append([(array - one).tolist() for array, one in zip(nodes.arrays, before, strict=True)])
        if any(each != seen[0] for each in seen) or sum(seen[0][0]) != 1 or sum(seen[0][1]) > 1:
            raise AssertionError(f"one launch in each stream counted {seen}")

    def check_memory(self, state):
        """What graphs used goes with them."""
        for bound in state.bound:
            bound.graph.close()
        for nodes in state.all_nodes:
            nodes.graph.close()
            vars(nodes).clear()
        resource, streams = state.resource, state.streams
        state.child.close()
        vars(state).clear()
        for stream in streams:
            stream.close()
        if not self.env.let_go(lambda: resource.statistics.current_count == 0):
            raise AssertionError(f"{resource.statistics.current_count} buffers are left of graphs that are gone")
