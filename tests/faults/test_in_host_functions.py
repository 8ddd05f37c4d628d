"""In a function that a stream waits for no operation calls the driver: it is refused, and what it closes goes after it."""

import gc
import warnings

import pytest

import ftcuda
from ftcuda import ClosedError, CUDAError, StridedMemoryView, host_launch
from ftcuda.graph import GraphDefinition
from ftcuda.memory import wait_for_deallocations
from ftcuda.testing import settle, simulation, together
from tests.conftest import KEPT, changes_since, live_handles, simulated_only
from tests.faults.test_every_call import NEED_GRAPHS, NOT_FAILED, OPERATIONS, World, attempt, build, calls, count, image  # noqa: F401
from tests.objects.graphs import needs_graphs

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="compares the handles of the whole process")]

NOT_PERMITTED = 800
# What waits for another function that ftcuda calls, or for the device to be held.
ELSEWHERE = {"Event.when_done"}
# What only closes or lets go.
CLOSES = {name for name in OPERATIONS if ".close" in name}
# What may need no call of the driver, but waits for others who may be in one.
WAITS = {"StagingPool.lease", "Stream.exclusive"}


@pytest.fixture
def nothing_left_behind():
    """Instead of the one for all tests: what is left is compared here."""


def inside(function):
    """What a host function that calls `function` came to."""
    stream = ftcuda.Device(0).create_stream()
    said = []
    host_launch(stream, lambda: said.append(function()))
    stream.sync(timeout=60)
    stream.close()
    return said[0]


def needs_the_driver(operation, image):  # noqa: F811
    world = World(image)
    before = calls()
    error, _ = attempt(operation, world)
    made = {name for name, count in calls().items() if count != before[name]} - NOT_FAILED
    world.close()
    return bool(made) or error is not None


@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) - ELSEWHERE))
def test_each_operation(operation, image):  # noqa: F811
    """Mutants: the seam that lets a call pass; an object that is not put off."""
    needed = needs_the_driver(operation, image)
    settle()

    def run():
        """What is left once it was tried inside, and then elsewhere."""
        world = World(image)
        error, warned = inside(lambda world=world: attempt(operation, world))
        if error is not None and not not_there(error):
            assert isinstance(error, CUDAError) and error.code == NOT_PERMITTED, repr(error)
            assert "in a function that a stream waits for" in str(error)
        elif error is None:
            assert operation in CLOSES or not (needed or operation in WAITS), "it was not refused"
        assert warned == []
        settle()
        again, warned = attempt(operation, world)  # elsewhere it works
        assert not_there(again) or not not_there(error)
        if operation not in NEED_GRAPHS:
            assert again is None or isinstance(again, ClosedError) or not_there(again), repr(again)
        assert warned == []
        world.close()
        del world
        settle()
        return live_handles()

    run()  # makes what stays, as the context's own events
    before, after = run(), run()
    for _ in range(8):  # of what is kept for reuse there is as much as was ever used at once, which time decides
        if all(after[kind] <= before[kind] for kind in KEPT):
            break
        before, after = after, run()
    changes = {kind: count - before[kind] for kind, count in after.items()}
    assert not any(change > 0 if kind in KEPT else change for kind, change in changes.items()), changes
    assert simulation.violations() == []


def test_questions_that_wait_for_others(image):  # noqa: F811
    """Who answers them takes a lock that others hold during calls of the driver. Mutant: such a question that is answered."""
    device = ftcuda.Device(0)
    stream, pool = device.create_stream(), ftcuda.StagingPool(device, 4096)
    questions = [lambda: pool.statistics, lambda: stream.handle, stream.__cuda_stream__, stream.exclusive().__enter__]
    world = World(image)
    if device.features.graphs:
        builder = build(world, count(world))
        graph = builder.complete()
        questions += [lambda: graph.executable_count, builder.complete, builder.end_building, lambda: builder.graph_definition]

    def ask():
        return [error_of(question) for question in questions]

    for error in inside(ask):
        assert isinstance(error, CUDAError) and error.code == NOT_PERMITTED, repr(error)
    assert isinstance(inside(lambda: error_of(wait_for_deallocations)), RuntimeError)
    world.close()


def test_a_submission_waits_for_no_section(image):  # noqa: F811
    """It is refused before, or each would wait for the other. Mutant: it waits."""
    stream = ftcuda.Device(0).create_stream()
    with stream.exclusive():
        error = inside(lambda: error_of(stream.record))
    assert isinstance(error, CUDAError) and error.code == NOT_PERMITTED, repr(error)
    stream.close()


@needs_graphs
def test_memory_of_a_graph_is_freed_in_it(image):  # noqa: F811
    """By the builder, a moment after the function. Mutant: a free that is forgotten."""
    device = ftcuda.Device(0)
    if not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory of graphs")
    for ends in (False, True):
        builder = device.create_graph_builder().begin_building()
        memory = ftcuda.GraphMemoryResource(device).allocate(128, stream=builder)
        memory.fill(1, stream=builder)
        if ends:
            graph = builder.end_building().complete()
        assert inside(lambda memory=memory: error_of(memory.close)) is None
        settle_closings()
        assert memory.is_closed
        if not ends:
            graph = builder.end_building().complete()
        stream = device.create_stream()
        for _ in range(1 if ends else 3):  # what a graph does not free cannot be launched again
            graph.launch(stream)
        stream.sync()
        for each in (graph, builder, stream):
            each.close()
    assert simulation.violations() == []


def settle_closings():
    """Without a wait for the device, which would end captures."""
    for _ in range(3):
        ftcuda.Device(0).create_event().close()  # each call lets go of what is over
        wait_for_deallocations()


def error_of(question):
    try:
        return question()
    except Exception as error:
        return error.with_traceback(None)


def not_there(error):
    return isinstance(error, ftcuda.NotSupportedError)


def made_of_each_kind(device, image):  # noqa: F811
    """What has a handle of the driver's, and is dropped by the caller."""
    device.set_current()
    stream = device.create_stream()
    made = [stream, stream.record(), device.create_event(), device.create_stream().exclusive()]
    made.append(ftcuda.SynchronousMemoryResource(device).allocate(64, stream=stream))
    made.append(ftcuda.LegacyPinnedMemoryResource().allocate(64))
    made.append(ftcuda.StagingPool(device, 4096).lease(64))
    made.append(StridedMemoryView.from_buffer(device.allocate(64, stream=stream), (64,), dtype="u1"))
    cache = ftcuda.CachingMemoryResource(ftcuda.SynchronousMemoryResource(device))
    cache.allocate(64, stream=stream).close()
    made.append(cache)
    if device.features.memory_pools:
        made.append(ftcuda.DeviceMemoryResource(device, {"max_size": 1 << 20}))
    made.append(ftcuda.ObjectCode.from_ptx(image).get_kernel("increment"))
    if device.features.graphs:
        world = World(image)
        builder = build(world, count(world))
        made += [builder, builder.complete(), world]
    if device.features.conditional_graphs:  # which came with graph definitions
        made.append(GraphDefinition())
    stream.sync()
    return made


@pytest.mark.parametrize("way", ["close", "drop", "collect"])
def test_what_goes_in_one_goes_after_it(way, image):  # noqa: F811
    """Mutant: a handle of any kind that is not put off, which the driver keeps, and a warning tells."""
    device = ftcuda.Device(0)
    settle()
    before = live_handles()
    # By a thread that has ended: what a living one made, without the GIL, would go when that thread finds time.
    (made,) = together(1, lambda index: made_of_each_kind(device, image))
    if way == "close" and device.features.graphs:
        made.append(device.create_graph_builder().begin_building())  # whose loss would be a warning

    def end():
        if way == "close":
            for each in reversed(made):
                if hasattr(each, "close") and not isinstance(each, World):
                    each.close()
        if way == "collect":
            circle = [*made]
            circle.append(circle)
        made.clear()
        circle = None
        gc.collect()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inside(end)
        settle()
    assert [warning for warning in caught if issubclass(warning.category, ftcuda.CUDAWarning)] == []
    assert changes_since(before) == {} and simulation.violations() == []
