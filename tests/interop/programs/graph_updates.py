"""A graph that takes the parameters of another one of the same shape, and refuses one of another shape."""

from common import Bench, core

bench = Bench()


def built(*values):
    builder = bench.device.create_graph_builder().begin_building()
    for value in values:
        core.launch(builder, bench.one, bench.append, bench.memory, value)
    return builder.end_building()


graph = built(1, 2).complete()
bench.run(graph)
graph.update(built(3, 4))
bench.run(graph)
assert bench.written() == [1, 2, 3, 4]
try:
    graph.update(built(5))
except Exception as error:  # CUDAError is in another place there
    assert type(error).__name__ == "CUDAError"
else:
    raise AssertionError("a graph of another shape was taken")
bench.run(graph)
assert bench.written() == [3, 4]
graph.close()
