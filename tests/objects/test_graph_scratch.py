"""Memory that each executable of a graph has for itself."""

import gc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from ftcuda import ClosedError, LaunchConfig, NotSupportedError, launch
from ftcuda.graph import GraphBuilder, GraphCompleteOptions, GraphScratch, Parameter
from ftcuda.testing import faults
from tests.conftest import live_handles, simulated_only
from tests.kernels import compile_code
from tests.objects.graphs import ONE, OUT_OF_MEMORY, assert_goes, meet, needs_12, needs_definitions

pytestmark = [needs_12, pytest.mark.thread_unsafe(reason="makes threads of its own, and counts what the driver has")]

# `meet` waits until `wanted` launches came.
SOURCE = """
extern "C" __global__ void put(int* place, int value) { place[threadIdx.x] = value + threadIdx.x; }
extern "C" __global__ void total(int* out, const int* place, int count) {
    int sum = 0;
    for (int index = 0; index < count; ++index) sum += place[index];
    *out = sum;
}
extern "C" __global__ void meet(int* came, int* met, int wanted, int limit) {
    atomicAdd(came, 1);
    for (int turn = 0; turn < limit; ++turn) {
        if (*(volatile int*)came >= wanted) {
            atomicAdd(met, 1);
            return;
        }
    }
}
extern "C" __global__ void real(float value) {}
"""
COUNT = 8
WIDE = LaunchConfig(grid=1, block=COUNT)


def total(value):
    return COUNT * value + COUNT * (COUNT - 1) // 2


@pytest.fixture(scope="module")
def kernels():
    code = compile_code(SOURCE)
    return SimpleNamespace(**{name: code.get_kernel(name) for name in ("put", "total", "meet", "real")})


@pytest.fixture
def words(pinned):
    """Makes words of pinned memory, each with a view."""
    return lambda: pinned(np.zeros(4, np.int32))


def summing(device, kernels, out, most, between=None):
    """A graph that puts `value` to scratch memory, and its sum to `out`, both parameters. `between(builder)`: amid it."""
    builder = device.create_graph_builder().begin_building()
    scratch = builder.scratch(4 * COUNT)
    launch(builder, WIDE, kernels.put, scratch, Parameter("value", 1))
    if between is not None:
        between(builder)
    launch(builder, ONE, kernels.total, Parameter("out", out), scratch, COUNT)
    graph = builder.end_building().complete(GraphCompleteOptions(max_concurrency=most))
    builder.close()
    return graph


@pytest.mark.parametrize("most", [1, 2])
def test_what_lies_between_two_kernels(device, kernels, words, stream, most):
    memory, view = words()
    graph = summing(device, kernels, memory, most)
    assert graph.scratch_size == 4 * COUNT
    bound = graph.bind()
    assert bound.parameters == ("value", "out")
    streams = [stream, device.create_stream(), device.create_stream()]
    for value, each in enumerate(streams):
        bound.launch(each, value=value)
        each.sync()
        assert view[0] == total(value)
    graph.launch(stream)
    stream.sync()
    assert view[0] == total(1)
    graph.close()


def test_launches_that_overlap_have_their_own(device, kernels, words):
    """Two wait for each other between their kernels, each with a value of its own."""
    (_, first), (_, second), (_, counts) = outs = [words() for _ in range(3)]
    came, met = outs[2][0].handle, int(outs[2][0].handle) + 4
    graph = summing(device, kernels, outs[0][0], 2, lambda builder: launch(builder, ONE, kernels.meet, came, met, 2, 30_000_000))
    streams = [device.create_stream() for _ in range(2)]
    for each in streams:
        graph.upload(each)
    bound = graph.bind()
    for (memory, _), value, each in zip(outs, (100, 200), streams, strict=False):
        bound.launch(each, out=memory, value=value)
    for each in streams:
        each.sync()
    assert counts[:2].tolist() == [2, 2]
    assert (first[0], second[0]) == (total(100), total(200))
    graph.close()


def test_several_of_one_graph(device, kernels, words):
    """In two branches, in several launches, and the same one twice in one launch."""
    (memory, view), (other, second) = words(), words()
    builder = device.create_graph_builder().begin_building()
    first, further = builder.scratch(4 * COUNT), builder.scratch(4 * COUNT + 4)
    builder, part = builder.split(2)
    launch(builder, WIDE, kernels.put, first, Parameter("value", 1))
    launch(part, WIDE, kernels.put, further, Parameter("more", 2))
    GraphBuilder.join(builder, part)
    launch(builder, ONE, kernels.total, first, first, COUNT)  # its sum takes the first place
    launch(builder, ONE, kernels.total, Parameter("out", memory), first, 1)
    launch(builder, ONE, kernels.total, Parameter("other", other), further, COUNT)
    graph = builder.end_building().complete(GraphCompleteOptions(max_concurrency=3))
    assert graph.scratch_size == 8 * COUNT + 4
    bound = graph.bind()
    streams = [device.create_stream() for _ in range(3)]
    for value, each in enumerate(streams):
        bound.launch(each, value=value, more=10 * value)
        each.sync()
        assert (view[0], second[0]) == (total(value), total(10 * value))
    graph.close()
    builder.close()


def test_without_a_parameter(device, kernels, words, stream):
    memory, view = words()
    builder = device.create_graph_builder().begin_building()
    scratch = builder.scratch(4 * COUNT)
    launch(builder, WIDE, kernels.put, scratch, 5)
    launch(builder, ONE, kernels.total, memory, scratch, COUNT)
    graph = builder.end_building().complete({"max_concurrency": 4})
    with pytest.raises(ValueError, match="no argument in it has a name"):
        graph.bind()
    for each in (stream, device.create_stream(), device.create_stream()):
        view[0] = 0
        graph.launch(each)
        each.sync()
        assert view[0] == total(5)
    graph.close()
    builder.close()


def test_many_threads(device, kernels, words):
    """Each launches in a stream of its own and looks at all that it got, while one trims."""
    memory, _ = words()
    graph = summing(device, kernels, memory, 8)
    bound = graph.bind()
    outs = [words() for _ in range(8)]

    def run(index):
        own, (out, view) = device.create_stream(), outs[index]
        for turn in range(40):
            bound.launch(own, value=1000 * index + turn, out=out)
            if index == 0 and turn % 8 == 0:
                graph.trim()
            own.sync()
            assert view[0] == total(1000 * index + turn)
        own.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))
    graph.close()


@simulated_only
@pytest.mark.parametrize("end", ["trim", "close"])
def test_it_lives_until_its_launches_are_done(device, kernels, words, held_clock, end):
    """The simulated driver reports work with memory that was freed."""
    outs = [words() for _ in range(3)]
    graph = summing(device, kernels, outs[0][0], 3)
    bound = graph.bind()
    streams = [device.create_stream() for _ in range(3)]
    with held_clock():
        for value, (each, (memory, _)) in enumerate(zip(streams, outs, strict=True)):
            bound.launch(each, value=value, out=memory)
        getattr(graph, end)()
        ftcuda.memory.wait_for_deallocations()
        gc.collect()
    device.sync()
    assert [view[0] for _, view in outs] == [total(value) for value in range(3)]
    bound.graph.close()


@simulated_only
def test_each_executable_has_one_and_frees_it(device, kernels, words):
    memory, _ = words()
    before = live_handles()["device_allocation"]
    graph = summing(device, kernels, memory, 4)
    streams = [device.create_stream() for _ in range(6)]
    for each in streams:
        graph.launch(each)
    assert live_handles()["device_allocation"] == before + 4 == before + graph.executable_count
    graph.trim()
    assert_goes(lambda: live_handles()["device_allocation"] == before + 1, device)
    graph.launch(streams[1])
    assert live_handles()["device_allocation"] == before + graph.executable_count == before + 2
    graph.close()
    assert_goes(lambda: live_handles()["device_allocation"] == before, device)


@simulated_only
def test_there_is_no_memory(device, kernels, words, stream):
    """Neither when a graph is completed nor when it is launched is anything lost or launched."""
    memory, view = words()
    builder = device.create_graph_builder().begin_building()
    scratch, further = builder.scratch(4 * COUNT), builder.scratch(4 * COUNT)
    for each in (further, scratch):
        launch(builder, WIDE, kernels.put, each, Parameter("value", 1))
    launch(builder, ONE, kernels.total, memory, scratch, COUNT)
    builder.end_building()
    options = GraphCompleteOptions(max_concurrency=3)
    for nth in (1, 2):
        with faults.failing("cuMemAlloc_v2", OUT_OF_MEMORY, nth=nth), pytest.raises(ftcuda.OutOfMemoryError):
            builder.complete(options)
    graph = builder.complete(options)
    bound = graph.bind()
    for each in (stream, device.create_stream()):
        graph.launch(each)
        each.sync()
    third = device.create_stream()
    for nth in (1, 2):
        view[0] = 0
        with faults.failing("cuMemAlloc_v2", OUT_OF_MEMORY, nth=nth), pytest.raises(ftcuda.OutOfMemoryError):
            bound.launch(third, value=7)
        device.sync()
        assert view[0] == 0 and graph.executable_count == 2
    bound.launch(third, value=7)
    third.sync()
    assert view[0] == total(7) and graph.executable_count == 3
    graph.close()
    builder.close()


@simulated_only
def test_two_threads_make_one_executable(device, kernels, words):
    """Each with memory; the second's is given back."""
    memory, view = words()
    graph = summing(device, kernels, memory, 3)
    bound = graph.bind()
    streams = [device.create_stream() for _ in range(3)]
    for each in streams[:2]:
        graph.launch(each)
    device.sync()
    assert meet("cuGraphInstantiateWithFlags", *[lambda: bound.launch(streams[2], value=3)] * 2) is None
    device.sync()
    assert graph.executable_count == 3 and view[0] == total(3)
    graph.close()


def test_where_it_does_not_belong(device, kernels, words, stream):
    memory, _ = words()
    builder, other = (device.create_graph_builder().begin_building() for _ in range(2))
    scratch = builder.scratch(4 * COUNT)
    with pytest.raises(ValueError, match="it is of another graph"):
        launch(other, WIDE, kernels.put, scratch, 1)
    belongs = "it is for launch\\(\\) with the builder that made it"
    with pytest.raises(TypeError, match=belongs):
        launch(stream, WIDE, kernels.put, scratch, 1)
    with pytest.raises(TypeError, match=belongs):
        launch(builder, WIDE, kernels.put, Parameter("where", scratch), 1)
    with pytest.raises(TypeError, match=belongs):
        kernels.put.bind(WIDE, scratch, 1)
    with pytest.raises(TypeError, match="cannot be a Buffer"):
        launch(builder, ONE, kernels.real, scratch)
    launch(builder, WIDE, kernels.put, Parameter("where", memory), 1)
    launch(builder, WIDE, kernels.put, scratch, 1)
    graph = builder.end_building().complete()
    with pytest.raises(TypeError, match=belongs):
        graph.bind().launch(stream, where=scratch)
    with pytest.raises(NotSupportedError, match="without a Parameter and scratch memory"):
        other.embed(builder)
    with pytest.raises(NotSupportedError, match="without a Parameter and scratch memory"):
        graph.update(builder)
    for each in (graph, builder, other):
        each.close()
    with pytest.raises(ClosedError):
        builder.scratch(4)
    with pytest.raises(TypeError, match="made by GraphBuilder.scratch"):
        GraphScratch()
    with pytest.raises(TypeError, match="no subclasses"):
        type("Mine", (GraphScratch,), {})


@needs_definitions
def test_not_in_a_definition(device, kernels):
    builder = device.create_graph_builder().begin_building()
    launch(builder, WIDE, kernels.put, builder.scratch(4 * COUNT), 1)
    builder.end_building()
    with pytest.raises(NotSupportedError, match="without a Parameter and scratch memory"):
        builder.graph_definition.callback(gc.collect)
    builder.close()


def test_not_in_a_body(device, kernels):
    if not device.features.conditional_graphs:
        pytest.skip("the driver has no conditional nodes")
    builder = device.create_graph_builder().begin_building()
    scratch = builder.scratch(4 * COUNT)
    body = builder.if_then(builder.create_condition(0)).begin_building()
    with pytest.raises(NotSupportedError, match="the bodies of conditional nodes"):
        launch(body, WIDE, kernels.put, scratch, 1)
    with pytest.raises(NotSupportedError, match="the bodies of conditional nodes"):
        body.scratch(4)
    body.end_building()
    builder.end_building()
    builder.close()


@pytest.mark.parametrize(
    ("size", "error", "match"),
    [(0, ValueError, "1 at least"), (-1, ValueError, "from 0"), (2**70, ValueError, "from 0"), ("4", TypeError, "int"), (True, TypeError, "int")],
)
def test_bad_sizes(device, size, error, match):
    builder = device.create_graph_builder()
    with pytest.raises(error, match=match):
        builder.scratch(size)
    builder.close()
