"""Kernels that are captured once, and launched again and again."""

from common import Bench, core

bench = Bench()
builder = bench.device.create_graph_builder().begin_building()
for value in (1, 2, 3):
    core.launch(builder, bench.one, bench.append, bench.memory, value)
graph = builder.end_building().complete()
assert not builder.is_building and bench.view[0] == 0
graph.upload(bench.stream)
bench.run(graph, times=2)
assert bench.written() == [1, 2, 3, 1, 2, 3]
graph.close()
builder.close()
