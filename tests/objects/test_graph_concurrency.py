"""Graphs whose launches may run at once: an executable of the driver's for each of some streams."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import ftcuda
from ftcuda import CUDAError, LaunchConfig, LegacyPinnedMemoryResource, NotSupportedError, launch
from ftcuda.graph import GraphCompleteOptions, GraphDefinition
from ftcuda.testing import Schedule, faults, simulated_clock, together
from tests.conftest import seeds, simulated_only
from tests.kernels import compile_code
from tests.objects.graphs import (
    ONE,
    OUT_OF_MEMORY,
    assert_kept,
    assert_nothing_left,
    meet,
    needs_12,
    needs_definitions,
    needs_graphs,
)

pytestmark = [
    needs_graphs,
    pytest.mark.thread_unsafe(reason="makes threads of its own, and counts what the driver has"),
]

PATIENCE = 60  # seconds

# Counts those that came, and those that saw `wanted` come while they looked `limit` times.
MEET = """
extern "C" __global__ void meet(int* came, int* met, int wanted, int limit) {
    atomicAdd(came, 1);
    for (int turn = 0; turn < limit; ++turn) {
        if (*(volatile int*)came >= wanted) {
            atomicAdd(met, 1);
            return;
        }
    }
}
"""


class Counting:
    """Graphs that count in a word, one for each launch, or as many as they are told."""

    def __init__(self, device, code, pinned):
        self.device, self.kernel = device, code.get_kernel("increment")
        self.memory, self.word = pinned(np.zeros(1, np.int32))
        self.builders = []

    def build(self, step=1):
        builder = self.device.create_graph_builder().begin_building()
        launch(builder, LaunchConfig(grid=1, block=step), self.kernel, self.memory)
        self.builders.append(builder.end_building())
        return builder

    def __call__(self, most, step=1):
        return self.build(step).complete(GraphCompleteOptions(max_concurrency=most))


@pytest.fixture
def counting(device, code, pinned):
    counting = Counting(device, code, pinned)
    yield counting
    for builder in counting.builders:
        builder.close()
    vars(counting).clear()  # pytest keeps it longer than this test is looked at


@pytest.mark.parametrize("most", [1, 2])
def test_launches_in_different_streams_meet(device, most):
    """Two launches wait for each other. With one executable the first is over before the second begins."""
    limit = 30_000_000 if most == 2 else 20_000
    meet = compile_code(MEET).get_kernel("meet")
    memory = [LegacyPinnedMemoryResource().allocate(4) for _ in range(2)]
    came, met = (np.frombuffer(each, np.int32) for each in memory)
    came[:] = met[:] = 0
    builder = device.create_graph_builder().begin_building()
    launch(builder, ONE, meet, *memory, 2, limit)
    graph = builder.end_building().complete(GraphCompleteOptions(max_concurrency=most))
    streams = [device.create_stream() for _ in range(2)]
    for stream in streams:
        graph.upload(stream)
    for stream in streams:
        graph.launch(stream)
    for stream in streams:
        stream.sync()
    assert (came[0], met[0]) == (2, most)
    for each in (graph, builder, *streams):
        each.close()


def test_executables_are_made_for_streams_up_to_the_limit(device, counting):
    graph = counting(4)
    assert graph.max_concurrency == 4 and graph.executable_count == 2
    streams = [device.create_stream() for _ in range(6)]
    counts = []
    for stream in streams:
        graph.launch(stream)
        counts.append(graph.executable_count)
    assert counts == [2, 2, 3, 4, 4, 4]
    graph.trim()
    assert graph.executable_count == 1
    for stream in streams:
        graph.launch(stream)
    assert graph.executable_count == 4
    for stream in streams:
        stream.sync()
        stream.close()
    assert counting.word[0] == 12
    graph.close()
    assert graph.executable_count == 0


def test_streams_that_come_and_go_need_no_executables_of_their_own(device, counting):
    graph = counting(64)
    for _ in range(40):
        stream = device.create_stream()
        graph.launch(stream)
        stream.sync()
        stream.close()
    assert counting.word[0] == 40 and graph.executable_count <= 4
    graph.close()


@needs_12
def test_an_update_is_seen_in_every_stream(device, counting):
    graph, other = counting(3), counting.build(step=16)
    streams = [device.create_stream() for _ in range(5)]
    for stream in streams:
        graph.launch(stream)
    graph.update(other)
    for stream in streams:
        graph.launch(stream)
    longer = device.create_graph_builder().begin_building().end_building()
    with pytest.raises(CUDAError, match="not the same nodes and edges"):
        graph.update(longer)
    for stream in streams:
        graph.launch(stream)
        stream.sync()
    assert counting.word[0] == 5 + 2 * 5 * 16
    for each in (graph, longer, *streams):
        each.close()


@needs_12
@simulated_only
def test_an_executable_that_is_made_amid_an_update_is_not_launched(device, counting):
    """Mutant: it was made of the old graph, and is put in place behind the update."""
    graph, builders, stream = counting(2), [counting.builders[0], counting.build(step=16)], device.create_stream()
    graph.launch(device.create_stream())  # whose executable is the first
    for seed in seeds(400):
        graph.trim()
        update = partial(graph.update, builders[1 - seed % 2])
        together(2, lambda index, update=update: update() if index else graph.launch(stream), schedule=Schedule("pct", 10, seed))
        stream.sync()
        before = int(counting.word[0])
        graph.launch(stream)
        stream.sync()
        assert counting.word[0] - before == (1 if seed % 2 else 16)
    graph.close()


@simulated_only
def test_what_was_captured_lives_until_all_launches_are_done(device, code, held_clock):
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    streams = [device.create_stream() for _ in range(3)]
    builder = device.create_graph_builder().begin_building()
    with resource.allocate(4) as buffer:
        launch(builder, ONE, code.get_kernel("increment"), buffer)
    graph = builder.end_building().complete(GraphCompleteOptions(max_concurrency=3))
    with held_clock():
        for stream in streams:
            graph.launch(stream)
        builder.close()
        graph.close()
        ftcuda.memory.wait_for_deallocations()
        assert resource.statistics.current_count == 1
    assert_nothing_left(resource, device)


def test_a_builder_may_be_closed_before_all_executables_are_made(device, code):
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    builder = device.create_graph_builder().begin_building()
    with resource.allocate(4) as buffer:
        launch(builder, ONE, code.get_kernel("increment"), buffer)
    graph = builder.end_building().complete(GraphCompleteOptions(max_concurrency=8))
    builder.close()
    del builder
    gc.collect()
    assert_kept(resource, device)
    streams = [device.create_stream() for _ in range(8)]
    for each in streams:
        graph.launch(each)
    assert graph.executable_count == 8
    graph.close()
    assert_nothing_left(resource, device)


def test_threads_launch_at_once(device, counting):
    """Each in a stream of its own, while one trims."""
    graph = counting(8)

    def run(index):
        own = device.create_stream()
        for turn in range(50):
            graph.launch(own)
            if index == 0 and turn % 10 == 0:
                graph.trim()
        own.sync()
        own.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))
    assert counting.word[0] == 400
    graph.close()


@simulated_only
def test_two_threads_make_one_executable(device, counting):
    """Both find none for their stream, and one comes second."""
    graph = counting(3)
    streams = [device.create_stream() for _ in range(3)]
    for each in streams[:2]:
        graph.launch(each)
    assert meet("cuGraphInstantiateWithFlags", *[lambda: graph.launch(streams[2])] * 2) is None
    device.sync()
    assert graph.executable_count == 3 and counting.word[0] == 4
    graph.close()


@simulated_only
def test_a_graph_is_trimmed_when_nobody_is_in_what_it_was_made_of(counting):
    """The simulated driver reports two threads inside one graph."""
    graph = counting(2)
    assert meet("cuGraphInstantiateWithFlags", lambda: counting.builders[0].complete().close(), graph.trim) is None
    assert graph.executable_count == 1
    graph.close()


@simulated_only
def test_an_executable_ends_when_nobody_is_in_it(device, counting, stream):
    graph = counting(2)
    second = device.create_stream()
    graph.launch(stream)
    assert meet("cuGraphLaunch", lambda: graph.launch(second), graph.trim) is None
    device.sync()
    assert graph.executable_count == 1 and counting.word[0] == 2
    graph.close()


@needs_definitions
@simulated_only
@pytest.mark.parametrize("way", ["trimmed", "changed"])
def test_a_graph_is_closed_while_it_is_used(device, code, way):
    """Who closes it does not wait for who is inside, who then ends it."""
    definition = GraphDefinition()
    node = definition.launch(ONE, code.get_kernel("empty"))
    graph = definition.instantiate(GraphCompleteOptions(max_concurrency=2))
    uses = {"trimmed": ("cuGraphExecDestroy", graph.trim), "changed": ("cuGraphNodeSetEnabled", graph[node].disable)}
    entry, use = uses[way]
    with ThreadPoolExecutor(2) as pool, faults.holding(entry) as fault:
        used = pool.submit(use)
        fault.wait()
        pool.submit(graph.close).result(PATIENCE)
        fault.release()
        used.result(PATIENCE)
    assert graph.is_closed and graph.executable_count == 0


def test_default_streams_have_executables_too(device, counting, stream):
    graph = counting(4)
    for each in (stream, ftcuda.PER_THREAD_DEFAULT_STREAM, ftcuda.LEGACY_DEFAULT_STREAM):
        graph.launch(each)
    thread = threading.Thread(target=graph.launch, args=(ftcuda.PER_THREAD_DEFAULT_STREAM,))
    thread.start()
    thread.join()
    device.sync()
    assert counting.word[0] == 4
    graph.close()


@simulated_only
def test_a_launch_in_a_default_stream_that_cannot_be_marked(device, code):
    """Nobody knows when it is done before nothing runs, and what it uses stays until then."""
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    builder = device.create_graph_builder().begin_building()
    with resource.allocate(4) as buffer:
        launch(builder, ONE, code.get_kernel("increment"), buffer)
    graph = builder.end_building().complete()
    builder.close()
    with simulated_clock() as clock:
        clock.delay(ftcuda.PER_THREAD_DEFAULT_STREAM, 1.0)
        with faults.failing("cuEventRecord", 999):
            graph.launch(ftcuda.PER_THREAD_DEFAULT_STREAM)
        # Closed by another thread, to which the per-thread stream is another one.
        with pytest.warns(ftcuda.CUDAWarning, match="cannot mark launch of a graph"), ThreadPoolExecutor(1) as pool:
            pool.submit(graph.close).result()
        ftcuda.memory.wait_for_deallocations()
        assert resource.statistics.current_count == 1
        clock.advance(1.0)
    assert_nothing_left(resource, device)


@simulated_only
def test_an_executable_that_cannot_be_made(device, counting, stream):
    """Neither when the graph is completed nor when it is launched is anything lost or launched."""
    graph = counting(3)
    streams = [device.create_stream() for _ in range(3)]
    for each in streams[:2]:
        graph.launch(each)
    with faults.failing("cuGraphInstantiateWithFlags", OUT_OF_MEMORY), pytest.raises(ftcuda.OutOfMemoryError):
        graph.launch(streams[2])
    device.sync()
    assert counting.word[0] == 2 and graph.executable_count == 2
    graph.launch(streams[2])
    device.sync()
    assert counting.word[0] == 3
    graph.close()
    builder = counting.build()
    options = GraphCompleteOptions(max_concurrency=2, upload_stream=stream)
    for nth in (1, 2):
        with faults.failing("cuGraphInstantiateWithFlags", OUT_OF_MEMORY, nth=nth), pytest.raises(ftcuda.OutOfMemoryError):
            builder.complete(options)
    builder.complete(options).close()


def test_a_graph_that_has_one_executable_at_a_time(device, code):
    """Its bodies have values that launches change, and the driver keeps them in the graph."""
    if not device.features.conditional_graphs:
        pytest.skip("the driver has no conditional nodes")
    builder = device.create_graph_builder().begin_building()
    body = builder.if_then(builder.create_condition(0)).begin_building()
    launch(body, ONE, code.get_kernel("empty"))
    body.end_building()
    builder.end_building()
    with pytest.raises(NotSupportedError, match="one executable at a time"):
        builder.complete(GraphCompleteOptions(max_concurrency=2))
    builder.complete().close()
    builder.close()


@pytest.mark.parametrize(
    ("most", "error", "match"),
    [
        (0, ValueError, "from 1 to 256, not 0"),
        (257, ValueError, "from 1 to 256, not 257"),
        (-(2**70), ValueError, "from 1 to 256"),
        (True, TypeError, "must be an int, not bool"),
        (2.0, TypeError, "must be an int, not float"),
        (None, TypeError, "must be an int, not NoneType"),
    ],
)
def test_bad_arguments(counting, most, error, match):
    with pytest.raises(error, match=match):
        counting(most)


def test_closed(counting, stream):
    graph = counting(2)
    graph.close()
    assert graph.max_concurrency == 2
    for refuse in (graph.trim, lambda: graph.launch(stream)):
        with pytest.raises(ftcuda.ClosedError, match="graph"):
            refuse()
