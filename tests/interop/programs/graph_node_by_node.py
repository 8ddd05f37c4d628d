"""A graph of nodes: a kernel, a fill, a copy, and what joins them."""

import numpy as np
from common import Bench, core, graph

bench = Bench()
other, copied = bench.words(4)
definition = graph.GraphDefinition()
filled = definition.memset(bench.memory, np.int32(3), 4)
doubled = filled.launch(core.LaunchConfig(grid=1, block=4), bench.twice, bench.memory, 4)
moved = doubled.memcpy(other, bench.memory, 16)
put = definition.launch(bench.one, bench.put, int(bench.memory.handle) + 60, 9)
end = moved.join(put)
assert isinstance(filled, graph.MemsetNode) and isinstance(end, graph.EmptyNode)
assert definition.nodes() == {filled, doubled, moved, put, end}
assert definition.edges() == {(filled, doubled), (doubled, moved), (moved, end), (put, end)}
assert (filled.width, filled.height, filled.element_size, filled.value) == (4, 1, 4, 3)
assert (moved.size, moved.dst, moved.src) == (16, int(other.handle), int(bench.memory.handle))
assert doubled.grid == (1, 1, 1) and doubled.block == (4, 1, 1) and doubled.shmem_size == 0
made = definition.instantiate()
bench.run(made)
assert copied.tolist() == [6] * 4 and bench.view[15] == 9
made.close()
