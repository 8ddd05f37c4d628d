"""Functions of the host in a graph: a callable, and a function pointer with data."""

import ctypes

from common import Bench, core

bench = Bench()
seen = []


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def pointer(data):
    seen.append(ctypes.c_int.from_address(data).value)


builder = bench.device.create_graph_builder().begin_building()
core.launch(builder, bench.one, bench.put, bench.memory, 5)
builder.callback(lambda: seen.append(int(bench.view[0])))
builder.callback(pointer, user_data=bytes(ctypes.c_int(7)))
graph = builder.end_building().complete()
bench.run(graph)
assert seen == [5, 7]
graph.close()
