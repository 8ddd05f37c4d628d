"""Graphs: captured by a builder, launched as one, with the values that call by call would give."""

import ctypes
import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import ftcuda
from ftcuda import ClosedError, CUDAError, LegacyPinnedMemoryResource, launch
from ftcuda.graph import Graph, GraphBuilder, GraphCompleteOptions, GraphDebugPrintOptions
from ftcuda.testing import Schedule, faults, together
from ftcuda.testing.schedule import point
from tests.conftest import seeds, simulated_only
from tests.kernels import IS_SIMULATED, compile_code
from tests.objects.graphs import (
    DRIVER,
    ONE,
    OUT_OF_MEMORY,
    assert_goes,
    assert_goes_by_itself,
    assert_kept,
    assert_nothing_left,
    meet,
    needs_12,
    needs_graphs,
    new_log,
    written,
)

pytestmark = needs_graphs


def captured(builder, code, buffer, *values):
    builder.begin_building()
    for value in values:
        launch(builder, ONE, code.get_kernel("append"), buffer, value)
    return builder.end_building().complete()


def test_what_is_captured_runs_when_it_is_launched(make_builder, code, pinned, stream):
    builder = make_builder()
    buffer, view = new_log(pinned)
    graph = captured(builder, code, buffer, 1, 2, 3)
    stream.sync()
    assert written(view) == []
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    assert written(view) == [1, 2, 3] * 2
    graph.close()


def test_copies_and_fills_are_captured(make_builder, device, stream):
    builder = make_builder()
    with device.allocate(64, stream=stream) as first, device.allocate(64, stream=stream) as second:
        stream.sync()
        builder.begin_building()
        first.fill(7, stream=builder)
        first.copy_to(second, stream=builder)
        graph = builder.end_building().complete()
        host = second.copy_to(np.zeros(64, np.uint8), stream=stream)
        stream.sync()
        graph.launch(stream)
        host = second.copy_to(np.zeros(64, np.uint8), stream=stream)
        stream.sync()
        assert (host == 7).all()
        graph.close()
        stream.sync()


@pytest.mark.thread_unsafe(reason="looks at what is left, which another thread may keep for a moment")
@pytest.mark.parametrize("in_child", [False, True])
def test_a_captured_buffer_lives_until_the_last_launch(make_builder, code, stream, in_child):
    builder = make_builder()
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    buffer = resource.allocate(64)
    np.frombuffer(buffer, np.int32)[:] = 0
    graph = captured(builder, code, buffer, 5)
    if in_child:
        graph.close()
        parent = make_builder().begin_building()
        parent.embed(builder)
        graph = parent.end_building().complete()
        parent.close()
    buffer.close()
    builder.close()
    assert_kept(resource, stream.device)
    graph.launch(stream)
    assert_kept(resource, stream.device)
    graph.close()
    stream.sync()
    assert_nothing_left(resource, stream.device)


@pytest.mark.thread_unsafe(reason="waits for the device, which a capture of another thread forbids")
@pytest.mark.parametrize("bound", [False, True])
def test_a_captured_kernel_lives_until_the_last_launch(make_builder, device, pinned, stream, bound):
    """Its module would be unloaded by the next wait for the device."""
    code = compile_code('extern "C" __global__ void seven(int* place) { *place = 7; }')
    kernel = code.get_kernel("seven")
    builder = make_builder()
    buffer, view = pinned(np.zeros(1, np.int32))
    builder.begin_building()
    if bound:
        kernel.bind(ONE, buffer).launch(builder)
    else:
        launch(builder, ONE, kernel, buffer)
    graph = builder.end_building().complete()
    builder.close()
    del kernel, code
    gc.collect()
    device.sync()
    graph.launch(stream)
    stream.sync()
    assert view[0] == 7
    graph.close()


@pytest.mark.thread_unsafe(reason="looks at what is left, which another thread may keep for a moment")
@pytest.mark.parametrize("default", [False, True])
def test_what_was_captured_lives_until_the_work_is_done(make_builder, code, stream, held_clock, default):
    """Of each launch, in whatever stream, also if the graph is closed or updated before."""
    where = ftcuda.PER_THREAD_DEFAULT_STREAM if default else stream
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    buffers = [resource.allocate(4) for _ in range(2)]
    builders = [make_builder() for _ in buffers]
    for builder, buffer in zip(builders, buffers, strict=True):
        builder.begin_building()
        launch(builder, ONE, code.get_kernel("increment"), buffer)
        builder.end_building()
        buffer.close()
    graph = builders[0].complete()
    with held_clock(), ThreadPoolExecutor(1) as pool:
        pool.submit(graph.launch, where).result()  # whose default stream is not this thread's
        if DRIVER >= (12, 0):
            graph.update(builders[1])
        for builder in builders:
            builder.close()
        pool.submit(graph.launch, where).result()
        graph.close()
        ftcuda.memory.wait_for_deallocations()
        assert resource.statistics.current_count == (2 if DRIVER >= (12, 0) else 1)
    assert_nothing_left(resource, stream.device)


@pytest.mark.thread_unsafe(reason="looks at what is left, which another thread may keep for a moment")
def test_what_was_captured_outlives_work_in_a_default_stream_of_another_thread(make_builder, code, stream):
    """This thread cannot name that stream, and its own one has nothing to do."""
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    goes_on = threading.Event()
    builder = make_builder().begin_building()
    builder.callback(goes_on.wait)
    with resource.allocate(4) as buffer:
        launch(builder, ONE, code.get_kernel("increment"), buffer)
    graph = builder.end_building().complete()
    builder.close()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(graph.launch, ftcuda.PER_THREAD_DEFAULT_STREAM).result()
        graph.close()
        goes_on.wait(0.2)  # in which whoever may would let go of the memory
        ftcuda.memory.wait_for_deallocations()
        left = resource.statistics.current_count
        goes_on.set()
    assert left == 1
    assert_nothing_left(resource, stream.device)


@pytest.mark.thread_unsafe(reason="looks at what is left, which another thread may keep for a moment")
@pytest.mark.parametrize("end", ["close", "drop", pytest.param("update", marks=needs_12)])
@pytest.mark.parametrize("default", ["LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM"])
def test_what_launches_in_a_default_stream_use_goes_by_itself(device, code, stream, held_clock, default, end):
    """As soon as they are done, also if the graph ends before: nobody waits for the device."""
    where, kept = getattr(ftcuda, default), []
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    for _ in range(3):
        builder = device.create_graph_builder().begin_building()
        with resource.allocate(4) as buffer:
            launch(builder, ONE, code.get_kernel("increment"), buffer)
        graph = builder.end_building().complete()
        builder.close()
        other = device.create_graph_builder().begin_building()
        with LegacyPinnedMemoryResource().allocate(4) as buffer:
            launch(other, ONE, code.get_kernel("increment"), buffer)
        other.end_building()
        with held_clock():
            graph.launch(where)
            if end == "close":
                graph.close()
            elif end == "update":
                graph.update(other)
                kept.append(graph)
            del graph
            ftcuda.memory.wait_for_deallocations()
            assert resource.statistics.current_count == 1
        assert_goes_by_itself(lambda: resource.statistics.current_count == 0)
        other.close()
    assert len(kept) == (3 if end == "update" else 0)


@needs_12
@pytest.mark.thread_unsafe(reason="looks at what is left, which another thread may keep for a moment")
def test_a_graph_has_what_it_uses_since_its_update(make_builder, code, stream):
    old, new = (ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource()) for _ in range(2))
    builders = [make_builder().begin_building() for _ in range(2)]
    for builder, resource in zip(builders, (old, new), strict=True):
        with resource.allocate(4) as buffer:
            launch(builder, ONE, code.get_kernel("increment"), buffer)
        builder.end_building()
    graph = builders[0].complete()
    graph.launch(stream)
    graph.update(builders[1])
    for builder in builders:
        builder.close()
    stream.sync()
    assert_nothing_left(old, stream.device)
    assert_kept(new, stream.device)
    graph.launch(stream)
    graph.close()
    assert_nothing_left(new, stream.device)


def test_parts_run_between_split_and_join(make_builder, device, code, pinned, stream):
    builder = make_builder()
    buffers, views = zip(*(pinned(np.zeros(4, np.int32)) for _ in range(3)), strict=True)
    increment = code.get_kernel("increment")
    builder.begin_building()
    launch(builder, ONE, code.get_kernel("store"), buffers[0], 10)
    parts = builder.split(3)
    assert parts[0] is builder and all(part.is_join_required for part in parts[1:]) and not builder.is_join_required
    for part, buffer in zip(parts, buffers, strict=True):
        launch(part, ONE, increment, buffer)
    assert GraphBuilder.join(*reversed(parts)) is builder
    assert all(part.is_closed for part in parts[1:]) and not builder.is_closed
    launch(builder, ONE, increment, buffers[1])
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert [view[0] for view in views] == [11, 2, 1]
    with pytest.raises(ClosedError):
        launch(parts[1], ONE, increment, buffers[0])
    graph.close()


@pytest.mark.thread_unsafe(reason="who else waits for a stream takes the same event")
def test_events_of_a_capture_serve_nobody_else(make_builder, device, stream):
    """While it goes on. A GPU's driver crashes; the simulated one reports them."""
    other = device.create_stream()
    builder = make_builder().begin_building()
    _, part = builder.split(2)
    stream.wait(other)  # by an event of those that are left from orders before
    GraphBuilder.join(builder, part)
    stream.wait(other)
    builder.end_building()
    stream.wait(other)


@simulated_only
@pytest.mark.thread_unsafe(reason="plans a fault for the whole process")
def test_a_stream_is_closed_while_another_one_waits_for_it(device):
    """Which asks it, at the end, whether a capture has the event. The simulated driver reports a stale handle."""
    first, second = device.create_stream(), device.create_stream()
    assert first.handle  # others may capture it
    assert meet("cuStreamWaitEvent", lambda: second.wait(first), first.close) is None
    assert first.is_closed


def test_a_part_that_is_not_joined(make_builder, code):
    builder = make_builder()
    builder.begin_building()
    _, part = builder.split(2)
    launch(part, ONE, code.get_kernel("empty"))
    with pytest.raises(RuntimeError, match="join the parts that split"):
        builder.end_building()
    with pytest.raises(RuntimeError, match="no graph yet"):
        builder.complete()
    GraphBuilder.join(builder, part).end_building().complete().close()


@pytest.mark.parametrize("way", ["closed", "lost"])
def test_a_part_that_is_gone(make_builder, code, way):
    """The driver could end no capture without it, nor does it get more work."""
    builder = make_builder()
    builder.begin_building()
    _, part = builder.split(2)
    launch(part, ONE, code.get_kernel("empty"))
    if way == "closed":
        part.close()
    del part, _
    for refuse in (builder.end_building, lambda: launch(builder, ONE, code.get_kernel("empty")), lambda: builder.split(2)):
        with pytest.raises(RuntimeError, match="a part, or the body"):
            refuse()


def test_a_graph_in_a_graph(make_builder, device, code, pinned, stream):
    builder = make_builder()
    buffer, view = new_log(pinned)
    inner = device.create_graph_builder()
    captured(inner, code, buffer, 2, 3).close()
    append = code.get_kernel("append")
    builder.begin_building()
    launch(builder, ONE, append, buffer, 1)
    builder.embed(inner)
    inner.close()
    launch(builder, ONE, append, buffer, 4)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert written(view) == [1, 2, 3, 4]
    graph.close()


def test_a_launch_is_not_captured(make_builder, device, code, pinned, stream):
    """And spoils nothing."""
    builder = make_builder()
    buffer, view = new_log(pinned)
    inner = device.create_graph_builder()
    small = captured(inner, code, buffer, 7)
    builder.begin_building()
    for refuse in (small.launch, small.upload):
        with pytest.raises(CUDAError, match="is being captured"):
            refuse(builder)
    builder.embed(inner)
    graph = builder.end_building().complete()
    small.close()
    inner.close()
    graph.launch(stream)
    stream.sync()
    assert written(view) == [7]
    graph.close()


@needs_12
def test_update(make_builder, device, code, pinned, stream):
    builder = make_builder()
    buffer, view = new_log(pinned)
    graph = captured(builder, code, buffer, 1, 2)
    other = device.create_graph_builder()
    captured(other, code, buffer, 8, 9).close()
    graph.launch(stream)
    graph.update(other)
    graph.launch(stream)
    stream.sync()
    assert written(view) == [1, 2, 8, 9]
    longer = device.create_graph_builder()
    captured(longer, code, buffer, 1, 2, 3).close()
    with pytest.raises(CUDAError, match="not the same nodes and edges"):
        graph.update(longer)
    graph.launch(stream)
    stream.sync()
    assert written(view) == [1, 2, 8, 9, 8, 9]
    for each in (graph, other, longer):
        each.close()


def test_upload(make_builder, code, pinned, stream):
    builder = make_builder()
    buffer, view = new_log(pinned)
    builder.begin_building()
    launch(builder, ONE, code.get_kernel("append"), buffer, 1)
    builder.end_building()
    graph = builder.complete(GraphCompleteOptions(upload_stream=stream))
    graph.upload(stream)
    graph.launch(stream)
    stream.sync()
    assert written(view) == [1]
    graph.close()


def test_a_builder_takes_work_only_while_it_builds(make_builder, code):
    builder = make_builder()
    empty = code.get_kernel("empty")
    for refuse in (lambda: launch(builder, ONE, empty), lambda: launch(builder.stream, ONE, empty), lambda: builder.split(2)):
        with pytest.raises(RuntimeError, match="after its begin_building"):
            refuse()
    with pytest.raises(RuntimeError, match="after its begin_building"):
        builder.end_building()
    assert not builder.is_building
    assert builder.begin_building() is builder and builder.is_building
    with pytest.raises(RuntimeError, match="has begun before"):
        builder.begin_building()
    with pytest.raises(RuntimeError, match="no graph yet"):
        builder.complete()
    assert builder.end_building() is builder and not builder.is_building
    with pytest.raises(RuntimeError, match="after its begin_building"):
        launch(builder, ONE, empty)
    builder.close()
    for refuse in (builder.begin_building, builder.complete, lambda: launch(builder, ONE, empty), builder.__cuda_stream__):
        with pytest.raises(ClosedError):
            refuse()


def test_nobody_ends_the_capture(make_builder, device, code, pinned, stream):
    """Waits and questions are refused, and allocations, frees and the garbage of others do no harm."""
    builder = make_builder()
    buffer, view = new_log(pinned)
    builder.begin_building(mode="global")
    launch(builder, ONE, code.get_kernel("append"), buffer, 1)
    for refuse in (device.sync, lambda: device.sync(timeout=1)):
        with pytest.raises(CUDAError, match="is being captured"):
            refuse()
    for refuse in (builder.stream.sync, lambda: builder.stream.is_done, lambda: builder.stream.exclusive().__enter__()):
        with pytest.raises(RuntimeError, match="it is a graph builder's"):
            refuse()
    builder.stream.close()
    device.create_event().close()
    device.allocate(1 << 20, stream=stream).close()
    stream.sync()
    launch(builder, ONE, code.get_kernel("append"), buffer, 2)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert written(view) == [1, 2]
    graph.close()


def test_an_event_of_a_capture_is_part_of_it(make_builder, device, code, pinned, stream):
    """Nobody asks it, waits for it elsewhere, or records it there: the question would end the capture."""
    builder, other = make_builder(), make_builder()
    buffer, view = new_log(pinned)
    before = stream.record(options={"timing_enabled": True})
    builder.begin_building()
    other.begin_building()
    launch(builder, ONE, code.get_kernel("append"), buffer, 1)
    event = builder.stream.record(options={"timing_enabled": True})
    builder.stream.wait(event)
    builder.stream.record(event)
    for when in ("while it builds", "after"):
        for refuse in (lambda: event.is_done, event.sync, lambda: event.sync(timeout=1), lambda: event - before):
            with pytest.raises(RuntimeError, match="it is a graph builder's"):
                refuse()
        waits = [lambda: stream.wait(event), lambda: stream.wait(builder), lambda: other.stream.wait(event), lambda: other.stream.wait(builder)]
        inside = [lambda thing=thing: builder.stream.wait(thing) for thing in (before, stream, ftcuda.LEGACY_DEFAULT_STREAM, other)]
        records = [lambda: stream.record(event), lambda: builder.stream.record(before)]
        for refuse in (*waits, *inside, *records):
            with pytest.raises(RuntimeError, match="work of the same capture|after its begin_building"):
                refuse()
        if when == "while it builds":
            launch(builder, ONE, code.get_kernel("append"), buffer, 2)
            graph = builder.end_building().complete()
            other.end_building()
    graph.launch(stream)
    stream.sync()
    assert written(view) == [1, 2]
    graph.close()
    event.close()
    before.close()


@pytest.mark.thread_unsafe(reason="makes threads of its own")
def test_nothing_that_others_ask_ends_a_capture_that_begins(device, code, stream):
    """Beside the very moment when it begins: who may ask is no question of time."""

    def race(index):
        if index == 0:
            for _ in range(200):
                builder = builders[0]
                builder.begin_building()
                launch(builder, ONE, code.get_kernel("empty"))
                builder.end_building()
                builders[0] = device.create_graph_builder()
            builders[0] = None
            return
        while (builder := builders[0]) is not None:
            for ask in (builder.stream.sync, lambda builder=builder: builder.stream.is_done, lambda builder=builder: stream.wait(builder)):
                with pytest.raises((RuntimeError, ClosedError)):
                    ask()

    builders = [device.create_graph_builder()]
    ftcuda.testing.together(3, race)
    stream.sync()


def test_a_builder_beside_a_stream(device, code, pinned):
    """Which goes on taking work that nobody captures."""
    buffer, view = new_log(pinned)
    stream = device.create_stream(options={"priority": -1})
    builder = stream.create_graph_builder().begin_building()
    assert builder.device is device and builder.stream.priority == -1 and builder.stream != stream
    launch(builder, ONE, code.get_kernel("append"), buffer, 2)
    launch(stream, ONE, code.get_kernel("append"), buffer, 1)
    stream.sync()
    graph = builder.end_building().complete()
    assert written(view) == [1]
    graph.launch(stream)
    stream.sync()
    assert written(view) == [1, 2]
    graph.close()
    builder.close()
    stream.close()
    with pytest.raises(ClosedError):
        stream.create_graph_builder()
    for default in (ftcuda.LEGACY_DEFAULT_STREAM, ftcuda.PER_THREAD_DEFAULT_STREAM):
        default.create_graph_builder().close()


@pytest.mark.thread_unsafe(reason="a wait for the device is refused while another thread captures")
def test_a_lost_builder_says_so(device, code):
    builder = device.create_graph_builder()
    builder.begin_building()
    launch(builder, ONE, code.get_kernel("empty"))
    with pytest.warns(ResourceWarning, match="lost while it captured"):
        del builder
    device.sync()  # which a capture would refuse


def test_closed(make_builder, code, pinned, stream):
    builder = make_builder()
    graph = captured(builder, code, new_log(pinned)[0], 1)
    graph.close()
    graph.close()
    assert graph.is_closed and graph.handle == 0 and "closed" in repr(graph)
    for refuse in (graph.launch, graph.upload):
        with pytest.raises(ClosedError, match="the graph is closed"):
            refuse(stream)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda builder, stream: builder.begin_building(mode="lazy"), ValueError, "relaxed"),
        (lambda builder, stream: builder.split(1), ValueError, "from 2 to 4096"),
        (lambda builder, stream: builder.split(10**30), ValueError, "from 2 to 4096"),
        (lambda builder, stream: builder.split(2.5), TypeError, "count must be an int"),
        (lambda builder, stream: GraphBuilder.join(builder), ValueError, "2 builders"),
        (lambda builder, stream: GraphBuilder.join(builder, stream), TypeError, "GraphBuilder, not Stream"),
        (lambda builder, stream: GraphBuilder.join(builder, builder), ValueError, "once"),
        (lambda builder, stream: builder.embed(stream), TypeError, "GraphBuilder, not Stream"),
        (lambda builder, stream: builder.embed(builder), ValueError, "has not ended"),
        (lambda builder, stream: GraphBuilder(), TypeError, "create_graph_builder"),
        (lambda builder, stream: Graph(), TypeError, "complete"),
        (lambda builder, stream: builder.complete(GraphDebugPrintOptions()), RuntimeError, "no graph yet"),
    ],
)
def test_bad_arguments(make_builder, stream, call, error, match):
    builder = make_builder()
    with pytest.raises(error, match=match):
        call(builder, stream)


def test_print(make_builder, code, tmp_path):
    builder = make_builder()
    builder.begin_building()
    launch(builder, ONE, code.get_kernel("empty"))
    path = tmp_path / f"{threading.get_ident()}.dot"
    builder.end_building().debug_dot_print(path, GraphDebugPrintOptions(verbose=True))
    text = path.read_text()
    assert text.startswith("digraph") and "empty" in text
    builder.debug_dot_print(os.fsencode(path))
    assert path.read_text().startswith("digraph")
    for where, error in ((tmp_path / "no" / "graph.dot", FileNotFoundError), (tmp_path, OSError), ("a\0b", ValueError), (3, TypeError)):
        with pytest.raises(error):
            builder.debug_dot_print(where)


def race_builders(device, code, act, parts=1):
    """Calls `act(index, builder, ...)` in two threads, for many captures: on the simulated driver under a seed each."""
    for seed in seeds(40):
        builder = device.create_graph_builder().begin_building()
        launch(builder, ONE, code.get_kernel("empty"))
        builders = builder.split(parts) if parts > 1 else (builder,)
        schedule = Schedule("random", seed=seed) if IS_SIMULATED else None
        together(2, lambda index, builders=builders: act(index, *builders), schedule=schedule)
        builder.close()


@pytest.mark.thread_unsafe(reason="makes threads of its own")
def test_a_builder_that_is_closed_ends_nothing(device, code):
    """Mutant: it is seen closed, and its capture ends well after that."""

    def act(index, builder):
        if index == 0:
            builder.close()
        elif builder.is_closed:
            with pytest.raises(ClosedError):
                builder.end_building()
        else:
            with suppress(ClosedError):
                builder.end_building()

    race_builders(device, code, act)


@pytest.mark.thread_unsafe(reason="makes threads of its own")
def test_a_builder_that_builds_no_more_has_a_graph(device, code):
    """Mutant: the capture is over, and another thread finds no graph."""

    def act(index, builder):
        if index == 0:
            builder.end_building()
            return
        for _ in range(100):
            if not builder.is_building:
                break
            if IS_SIMULATED:
                point()
        if not builder.is_building:
            builder.complete().close()

    race_builders(device, code, act)


@pytest.mark.thread_unsafe(reason="makes threads of its own")
def test_a_part_that_takes_no_more_is_closed(device, code):
    """Mutant: it refuses work because it was joined, and says that it is open."""

    def act(index, builder, part):
        if index == 0:
            GraphBuilder.join(builder, part)
            return
        was_closed = part.is_closed
        try:
            launch(part, ONE, code.get_kernel("empty"))
        except ClosedError:
            assert part.is_closed
        else:
            assert not was_closed

    race_builders(device, code, act, parts=2)


def test_parts_close_with_their_builder(make_builder, code):
    builder = make_builder().begin_building()
    _, part = builder.split(2)
    builder.close()
    assert part.is_closed and not part.is_building
    with pytest.raises(ClosedError):
        launch(part, ONE, code.get_kernel("empty"))


@simulated_only
@pytest.mark.thread_unsafe(reason="plans a fault for the whole process")
def test_a_split_that_fails_loses_nothing(make_builder, code, pinned, stream):
    builder = make_builder().begin_building()
    buffer, view = new_log(pinned)
    launch(builder, ONE, code.get_kernel("append"), buffer, 1)
    with faults.failing("cuStreamCreateWithPriority", OUT_OF_MEMORY, nth=3), pytest.raises(ftcuda.OutOfMemoryError):
        builder.split(5)
    launch(builder, ONE, code.get_kernel("append"), buffer, 2)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert written(view) == [1, 2]
    graph.close()


@simulated_only
@pytest.mark.thread_unsafe(reason="plans a fault for the whole process")
def test_what_is_refused_is_not_kept(make_builder, code, device):
    """Neither a graph that could not be embedded nor a function that could not be added."""
    resource = ftcuda.StatisticsMemoryResource(LegacyPinnedMemoryResource())
    child, builder = make_builder().begin_building(), make_builder().begin_building()
    with resource.allocate(4) as buffer:
        launch(child, ONE, code.get_kernel("increment"), buffer)
    child.end_building()

    class Function:
        def __call__(self):
            pass

    function = Function()
    gone = weakref.ref(function)
    with faults.failing("cuGraphAddChildGraphNode", OUT_OF_MEMORY), pytest.raises(ftcuda.OutOfMemoryError):
        builder.embed(child)
    with faults.failing("cuLaunchHostFunc", OUT_OF_MEMORY), pytest.raises(ftcuda.OutOfMemoryError):
        builder.callback(function)
    child.close()
    del function
    builder.end_building()
    assert_goes(lambda: gone() is None and resource.statistics.current_count == 0, device)
    builder.complete().close()


def test_threads_capture_into_one_builder(make_builder, code, pinned, stream):
    """Each thread adds its own launches: all of them are in the graph, one after the other."""
    builder = make_builder()
    buffer, view = pinned(np.zeros(1, np.int32))
    increment = code.get_kernel("increment")
    builder.begin_building()

    def add():
        for _ in range(20):
            launch(builder, ONE, increment, buffer)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert view[0] == 80
    graph.close()


def test_threads_launch_one_graph(make_builder, device, code, pinned):
    """In streams of their own: one launch after the other, none lost."""
    builder = make_builder()
    append = code.get_kernel("append")
    buffer, view = pinned(np.zeros(1024, np.int32))
    builder.begin_building()
    for value in (1, 2, 3):
        launch(builder, ONE, append, buffer, value)
    graph = builder.end_building().complete()

    def run():
        own = device.create_stream()
        for _ in range(25):
            graph.launch(own)
        own.sync()
        own.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert written(view) == [1, 2, 3] * 100
    graph.close()


@simulated_only
@pytest.mark.thread_unsafe(reason="plans a fault for the whole process")
def test_nothing_is_added_while_the_capture_ends(make_builder, code):
    builder = make_builder().begin_building()
    refused = meet("cuStreamEndCapture", builder.end_building, lambda: launch(builder, ONE, code.get_kernel("empty")))
    assert "after its begin_building" in str(refused)
    builder.complete().close()


@simulated_only
@pytest.mark.thread_unsafe(reason="plans a fault for the whole process")
def test_a_part_is_joined_once(make_builder):
    builder = make_builder().begin_building()
    _, part = builder.split(2)
    refused = meet("cuStreamWaitEvent", *[lambda: GraphBuilder.join(builder, part)] * 2)
    assert isinstance(refused, ClosedError)
    builder.end_building().complete().close()


@simulated_only
@pytest.mark.thread_unsafe(reason="plans a fault for the whole process")
@pytest.mark.parametrize("way", ["embed", "split", "condition", "conditional"])
def test_nothing_is_added_to_a_part_that_is_joined_meanwhile(device, make_builder, way):
    """It would be behind what the part was joined to, and the capture could not end."""
    if "condition" in way and not device.features.conditional_graphs:
        pytest.skip(reason="conditional nodes need a driver of CUDA 12.3")
    child = make_builder().begin_building().end_building()
    builder = make_builder().begin_building()
    _, part = builder.split(2)
    condition = builder.create_condition() if way == "conditional" else None
    calls = {
        "embed": lambda: part.embed(child),
        "split": lambda: part.split(2),
        "condition": part.create_condition,
        "conditional": lambda: part.if_then(condition),
    }
    refused = meet("cuStreamWaitEvent", lambda: GraphBuilder.join(builder, part), calls[way])
    assert isinstance(refused, ClosedError)
    builder.end_building()


@simulated_only
@pytest.mark.thread_unsafe(reason="plans a fault for the whole process")
@pytest.mark.parametrize("destroys", ["graph", "builder of a graph with a copy"])
def test_what_was_made_of_a_graph_ends_when_nobody_is_in_it(device, destroys):
    """The driver looks at the graph that an executable or a copy was made of when it destroys them.

    The simulated driver reports two threads inside one graph.
    """
    builder = device.create_graph_builder().begin_building().end_building()
    graph = builder.complete()
    parent = device.create_graph_builder().begin_building()
    parent.embed(builder)
    parent.end_building()
    ended = graph if destroys == "graph" else parent
    assert meet("cuGraphInstantiateWithFlags", lambda: builder.complete().close(), ended.close) is None
    for each in (graph, parent, builder):
        each.close()


@simulated_only
@pytest.mark.thread_unsafe(reason="plans a fault for the whole process")
@pytest.mark.parametrize("way", ["closed", "spoilt"])
def test_what_is_lost_ends_when_nobody_is_in_what_it_copied(device, way):
    """So does the graph of a capture that is closed, or that fails when it ends."""
    builder = device.create_graph_builder().begin_building().end_building()
    parent = device.create_graph_builder().begin_building()
    parent.embed(builder)
    if way == "spoilt":
        ctypes.CDLL(ftcuda.driver_info().path).cuStreamSynchronize(ctypes.c_void_p(parent.stream.handle))

    def end():
        if way == "closed":
            parent.close()
            return
        with pytest.raises(CUDAError):
            parent.end_building()

    entry = "cuGraphDestroy" if way == "closed" else "cuStreamEndCapture"
    assert meet(entry, end, lambda: builder.complete().close()) is None
    with pytest.raises(ClosedError if way == "closed" else RuntimeError):
        parent.complete()
    for each in (parent, builder):
        each.close()
