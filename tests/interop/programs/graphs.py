"""A graph that branches, joins, decides and calls back; another one in its place; and all of it in a third."""

import importlib

import numpy as np
from common import NAME, compiled, core, current_device

graph = importlib.import_module(f"{NAME}.graph")
SOURCE = """
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
extern "C" __global__ void store(int* place, int value) { *place = value; }
extern "C" __global__ void sum(int* result, const int* left, const int* right) { *result = *left + *right; }
extern "C" __global__ void decide(unsigned long long handle, const int* value, int limit) {
    cudaGraphSetConditional(handle, *value > limit);
}
extern "C" __global__ void count_down(unsigned long long handle, int* value) {
    cudaGraphSetConditional(handle, --*value > 0);
}
"""
device = current_device()
stream = device.create_stream()
code = compiled(SOURCE)
store, add, decide, count_down = (code.get_kernel(name) for name in ("store", "sum", "decide", "count_down"))
one = core.LaunchConfig(grid=1, block=1)
memory = core.LegacyPinnedMemoryResource().allocate(5 * 4)
numbers = np.from_dlpack(memory).view(np.int32)
numbers[:] = 0
place = [int(memory.handle) + 4 * index for index in range(5)]
LEFT, RIGHT, RESULT, LARGE, LOOPS = range(5)


def build(left, right, seen):
    """Adds two numbers, each in a branch of its own, and says whether the sum is more than 10."""
    builder = device.create_graph_builder().begin_building()
    core.launch(builder, one, store, place[LARGE], 0)
    branches = builder.split(2)
    core.launch(branches[0], one, store, place[LEFT], left)
    core.launch(branches[1], one, store, place[RIGHT], right)
    builder = graph.GraphBuilder.join(*branches)
    core.launch(builder, one, add, place[RESULT], place[LEFT], place[RIGHT])
    builder.callback(lambda: seen.append(int(numbers[RESULT])))
    return builder


def run(executable):
    executable.launch(stream)
    stream.sync()
    return numbers.tolist()


# Branches, a callback, an update.
first_seen, second_seen = [], []
first, second = build(3, 4, first_seen).end_building(), build(30, 40, second_seen).end_building()
sums = first.complete(graph.GraphCompleteOptions(upload_stream=stream))
assert run(sums)[:3] == [3, 4, 7] and first_seen == [7]
sums.update(second)
assert run(sums)[:3] == [30, 40, 70] and (first_seen, second_seen) == ([7], [70])

# One graph in another.
outer = device.create_graph_builder().begin_building()
core.launch(outer, one, store, place[RESULT], 1)
outer.embed(first)
embedded = outer.end_building().complete()
assert run(embedded)[:3] == [3, 4, 7]

# Conditions, in a builder beside a stream.
builder = stream.create_graph_builder().begin_building()
core.launch(builder, one, store, place[LARGE], 0)
large = builder.create_condition(default_value=0)
core.launch(builder, one, decide, large, place[LEFT], 10)
body = builder.if_then(large).begin_building()
core.launch(body, one, store, place[LARGE], 1)
body.end_building()
more = builder.create_condition(default_value=1)
loop = builder.while_loop(more).begin_building()
core.launch(loop, one, count_down, more, place[LOOPS])
loop.end_building()
decisions = builder.end_building().complete()
for left, wanted in ((3, 0), (30, 1)):
    numbers[LEFT], numbers[LOOPS] = left, 5
    assert run(decisions)[LARGE:] == [wanted, 0]
for each in (sums, embedded, decisions, first, second, outer, builder):
    each.close()
