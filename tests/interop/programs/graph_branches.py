"""Branches of a capture, and what comes after all of them."""

from common import Bench, core, graph

bench = Bench()
first = bench.device.create_graph_builder().begin_building()
core.launch(first, bench.one, bench.put, bench.memory, 1)
parts = first.split(3)
others = [bench.words(1) for _ in parts]
for number, (part, (memory, _)) in enumerate(zip(parts, others, strict=True)):
    core.launch(part, bench.one, bench.put, memory, 10 + number)
assert [part.is_join_required for part in parts] == [False, True, True]
joined = graph.GraphBuilder.join(*parts)
core.launch(joined, core.LaunchConfig(grid=1, block=1), bench.twice, bench.memory, 1)
made = joined.end_building().complete()
bench.run(made)
assert bench.view[0] == 2 and [view[0] for _, view in others] == [10, 11, 12]
made.close()
