"""A graph that is part of another one."""

from common import Bench, core

bench = Bench()
child = bench.device.create_graph_builder().begin_building()
core.launch(child, bench.one, bench.append, bench.memory, 2)
child.end_building()
builder = bench.device.create_graph_builder().begin_building()
core.launch(builder, bench.one, bench.append, bench.memory, 1)
builder.embed(child)
core.launch(builder, bench.one, bench.append, bench.memory, 3)
graph = builder.end_building().complete()
bench.run(graph)
assert bench.written() == [1, 2, 3]
graph.close()
