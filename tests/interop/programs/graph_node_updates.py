"""What nodes do is changed: in a definition for later graphs, and in a graph for its later launches."""

from common import Bench, core, graph

bench = Bench()
definition = graph.GraphDefinition()
put = definition.launch(bench.one, bench.put, bench.memory, 1)
fill = definition.memset(int(bench.memory.handle) + 4, 2, 4)
made = definition.instantiate()
put.update(args=(bench.memory, 5))
fill.update(value=3)
bench.run(made)
assert bench.view[:2].tolist() == [1, 0x02020202]
later = definition.instantiate()
bench.run(later)
assert bench.view[:2].tolist() == [5, 0x03030303]
later[put].update(config=bench.one, kernel=bench.put, args=(int(bench.memory.handle) + 8, 6))
later[fill].disable()
assert not later[fill].is_enabled and later[put].is_enabled
bench.view[:] = 0
bench.run(later)
assert bench.view[:3].tolist() == [0, 0, 6]
later[fill].enable()
later[fill].update(dst=bench.memory, value=1, width=2)
bench.run(later)
assert bench.view[:2].tolist() == [0x0101, 0]
put.update(kernel=bench.nothing, args=(), config=core.LaunchConfig(grid=2, block=1))
assert put.grid == (2, 1, 1)
for each in (made, later):
    each.close()
