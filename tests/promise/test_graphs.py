"""What a captured submission uses lives for as long as the graph that came of it."""

import ctypes
import gc
import weakref
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from ftcuda import Buffer, LaunchConfig, StridedMemoryView, launch
from ftcuda.memory import wait_for_deallocations
from ftcuda.testing import faults, simulation
from tests.conftest import simulated_only
from tests.kernels import IS_SIMULATED

ONE = LaunchConfig(grid=1, block=1)
RELAXED = 2  # CUstreamCaptureMode
UNKNOWN = 999  # a failure that does not end the context
pytestmark = pytest.mark.thread_unsafe(reason="another thread's call may be the one that lets go, a moment later")


class Driver:
    """Others' way to capture: the driver itself."""

    def __init__(self):
        if tuple(map(int, ftcuda.driver_info().version.split("."))) < (11, 3):
            pytest.skip(reason="before 11.3 nobody can give a graph something to keep")
        self.library = ctypes.CDLL(ftcuda.driver_info().path)

    def call(self, name, *arguments):
        assert getattr(self.library, name)(*arguments) == 0, name

    @contextmanager
    def captured(self, stream):
        """Captures in `stream`; the graph is in the list that it yields, when the block is over."""
        handle, graph, found = ctypes.c_void_p(stream.handle), ctypes.c_void_p(), []
        self.call("cuStreamBeginCapture_v2", handle, RELAXED)
        try:
            yield found
        finally:
            self.call("cuStreamEndCapture", handle, ctypes.byref(graph))
            found.append(graph)

    def destroy(self, graph):
        self.call("cuGraphDestroy", graph)


@pytest.fixture
def driver(device):
    return Driver()


class Kept:
    """Something that a test can see go."""


def resource_of(device):
    """A resource of which nobody else has memory, so that its account says what lives."""
    return ftcuda.StatisticsMemoryResource(ftcuda.LegacyPinnedMemoryResource())


def in_use(resource):
    return resource.statistics.current_count


def settle(device):
    """Twice: what a graph lets go of is marked in its stream, and goes when that is reached."""
    gc.collect()
    for _ in range(2):
        device.sync()
        wait_for_deallocations()


def assert_gone_with(graph, driver, device, is_there, is_gone):
    """What the graph keeps outlives a synchronisation, and goes with the graph."""
    settle(device)
    assert is_there()
    driver.destroy(graph)
    settle(device)
    assert is_gone()


def by_launch(buffer, stream, code):
    launch(stream, ONE, code.get_kernel("store"), buffer, 7)


def by_bound(buffer, stream, code):
    code.get_kernel("store").bind(ONE, buffer, 7).launch(stream)


def by_fill(buffer, stream, code):
    buffer.fill(7, stream=stream)


def by_copy(buffer, stream, code):
    other = ftcuda.LegacyPinnedMemoryResource().allocate(buffer.size)
    buffer.copy_from(other, stream=stream)


def by_view(buffer, stream, code):
    launch(stream, ONE, code.get_kernel("store"), StridedMemoryView.from_buffer(buffer, (1,), dtype="i4"), 7)


@pytest.mark.parametrize("use", [by_launch, by_bound, by_fill, by_copy, by_view])
def test_a_captured_buffer_lives_as_long_as_the_graph(device, code, driver, use):
    """Mutant: its memory is given back at close(), and the graph writes what is somebody else's."""
    resource = resource_of(device)
    stream = device.create_stream()
    buffer = resource.allocate(64)
    with driver.captured(stream) as graphs:
        use(buffer, stream, code)
        buffer.close()
        del buffer
    assert_gone_with(graphs[0], driver, device, lambda: in_use(resource) == 1, lambda: in_use(resource) == 0)


def launch_with(array, stream, code):
    launch(stream, ONE, code.get_kernel("store"), array, 7)


def bind(array, stream, code):
    code.get_kernel("store").bind(ONE, StridedMemoryView(array, -1), 7).launch(stream)


def copy_into(array, stream, code):
    source = ftcuda.LegacyPinnedMemoryResource().allocate(64)
    StridedMemoryView(array, -1).copy_from(StridedMemoryView.from_buffer(source, (64,), dtype="u1"), stream=stream)


@pytest.mark.parametrize("use", [launch_with, bind, copy_into])
def test_a_captured_array_of_others_lives_as_long_as_the_graph(device, code, driver, pinned, use):
    """Mutant: it is let go of at the next synchronisation, as what a capture used was once."""
    memory, _ = pinned(np.zeros(64, np.uint8))
    interface = memory.__cuda_array_interface__ | {"typestr": "|u1", "stream": None}
    array = SimpleNamespace(__cuda_array_interface__=interface, kept=Kept())
    gone = weakref.ref(array.kept)
    stream = device.create_stream()
    with driver.captured(stream) as graphs:
        use(array, stream, code)
    del array
    assert_gone_with(graphs[0], driver, device, lambda: gone() is not None, lambda: gone() is None)


def test_a_captured_buffer_of_an_owner_lives_as_long_as_the_graph(device, code, driver, pinned):
    memory, _ = pinned(np.zeros(64, np.uint8))
    owner = Kept()
    gone = weakref.ref(owner)
    buffer = Buffer.from_handle(memory.handle, 64, owner=owner)
    stream = device.create_stream()
    with driver.captured(stream) as graphs:
        buffer.fill(1, stream=stream)
    buffer.close()
    del buffer, owner
    assert_gone_with(graphs[0], driver, device, lambda: gone() is not None, lambda: gone() is None)


def test_a_stream_that_joins_a_capture_gives_to_its_graph(device, code, driver):
    """The handle of the second stream is nobody else's: it became part of the capture by an event, or by a stream.

    Mutant: a stream does not notice that it waits for one that is captured.
    """
    resource = resource_of(device)
    for join in (lambda second, first: second.wait(first), lambda second, first: second.wait(first.record())):
        first, second = device.create_stream(), device.create_stream()
        buffer = resource.allocate(64)
        with driver.captured(first) as graphs:
            by_launch(resource.allocate(64), first, code)
            join(second, first)
            by_launch(buffer, second, code)
            first.wait(second)
        buffer.close()
        assert_gone_with(graphs[0], driver, device, lambda: in_use(resource) == 2, lambda: in_use(resource) == 0)


def test_events_of_others_captures_serve_nobody_else(device, driver):
    """While they go on. A GPU's driver crashes; the simulated one reports them."""
    first, second, third, fourth = (device.create_stream() for _ in range(4))
    with driver.captured(first) as graphs:
        second.wait(first)
        third.wait(fourth)  # by an event of those that are left from orders before
        first.wait(second)
        third.wait(fourth)
    third.wait(fourth)
    driver.destroy(graphs[0])


def test_a_stream_joins_a_capture_by_an_event_of_others(device, code, driver):
    """Mutant: an event whose handle others have, and recorded, counts as one of ours alone."""
    resource = resource_of(device)
    first, second, event = device.create_stream(), device.create_stream(), device.create_event()
    with driver.captured(first) as graphs:
        driver.call("cuEventRecord", ctypes.c_void_p(event.handle), ctypes.c_void_p(first.handle))
        second.wait(event)
        buffer = resource.allocate(64)
        by_launch(buffer, second, code)
        first.wait(second)
        buffer.close()
    assert_gone_with(graphs[0], driver, device, lambda: in_use(resource) == 1, lambda: in_use(resource) == 0)


def test_a_capture_that_fails_keeps_nothing(device, code, driver):
    resource = resource_of(device)
    stream = device.create_stream()
    handle, graph = ctypes.c_void_p(stream.handle), ctypes.c_void_p()
    driver.call("cuStreamBeginCapture_v2", handle, RELAXED)
    by_launch(resource.allocate(64), stream, code)
    assert driver.library.cuStreamSynchronize(handle) != 0  # which no capture survives
    with suppress(ftcuda.CUDAError):  # the simulated driver says it only at the end
        by_launch(resource.allocate(64), stream, code)
    assert driver.library.cuStreamEndCapture(handle, ctypes.byref(graph)) != 0
    settle(device)
    assert in_use(resource) == 0


def test_a_buffer_that_was_passed_twice_is_freed_once(device, code, driver):
    resource = resource_of(device)
    stream = device.create_stream()
    buffer = resource.allocate(64)
    with driver.captured(stream) as graphs:
        by_launch(buffer, stream, code)
        buffer.copy_from(buffer, stream=stream)
    buffer.close()
    assert_gone_with(graphs[0], driver, device, lambda: in_use(resource) == 1, lambda: in_use(resource) == 0)


def test_after_a_capture_the_stream_is_as_before(device, code, driver):
    resource = resource_of(device)
    stream = device.create_stream()
    with driver.captured(stream) as graphs:
        by_launch(resource.allocate(64), stream, code)
    buffer = resource.allocate(64)
    by_launch(buffer, stream, code)
    stream.sync()
    assert np.frombuffer(buffer, np.int32)[0] == 7
    buffer.close()
    assert in_use(resource) == 1
    driver.destroy(graphs[0])
    settle(device)
    assert in_use(resource) == 0


@simulated_only
@pytest.mark.parametrize("entry", ["cuStreamGetCaptureInfo_v2", "cuUserObjectCreate", "cuGraphRetainUserObject"])
def test_what_a_graph_refuses_to_keep_is_not_captured(device, code, driver, pinned, entry):
    """Mutant: what was to be the graph's is nobody's, and lives for ever."""
    resource = resource_of(device)
    memory, _ = pinned(np.zeros(64, np.uint8))
    array = SimpleNamespace(__cuda_array_interface__=memory.__cuda_array_interface__ | {"stream": None}, kept=Kept())
    gone = weakref.ref(array.kept)
    stream = device.create_stream()
    buffer = resource.allocate(64)
    with driver.captured(stream) as graphs:
        for use in (by_launch, by_bound, by_fill, by_copy, launch_with):
            with faults.failing(entry, UNKNOWN), pytest.raises(ftcuda.CUDAError) as raised:
                use(array if use is launch_with else buffer, stream, code)
            assert raised.value.entry_point == entry
    buffer.close()
    del array, raised
    settle(device)
    assert in_use(resource) == 0 and gone() is None
    driver.destroy(graphs[0])


def test_a_stream_closed_while_it_is_captured_ends_the_capture(device, code, driver):
    """Mutant of the simulated driver: every wait for the whole device fails from then on."""
    stream, joined, ready = device.create_stream(), device.create_stream(), device.create_event()
    driver.call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream.handle), RELAXED)
    stream.record(ready)
    joined.wait(ready)
    stream.close()
    if IS_SIMULATED:
        assert simulation.violations() == ["stream destroyed while it captures"]
        simulation.clear_violations()
    status = ctypes.c_int(-1)
    driver.call("cuStreamIsCapturing", ctypes.c_void_p(joined.handle), ctypes.byref(status))
    assert status.value == 0  # nor is the one that had joined
    device.sync()
    with pytest.raises(ftcuda.CUDAError, match="INVALID_VALUE"):
        joined.wait(ready)
    word = ftcuda.LegacyPinnedMemoryResource().allocate(4)
    launch(joined, ONE, code.get_kernel("store"), word, 9)
    joined.sync()
    assert np.frombuffer(word, np.int32)[0] == 9


def test_a_graph_is_launched_after_its_buffers_were_closed(device, code, driver):
    """Mutant: the memory is somebody else's by then, and the graph writes to it."""
    stream = device.create_stream()
    result = ftcuda.LegacyPinnedMemoryResource().allocate(4)
    words = np.frombuffer(result, np.int32)
    buffer = device.allocate(4, stream=stream)
    address = buffer.handle
    with driver.captured(stream) as graphs:
        launch(stream, ONE, code.get_kernel("store"), buffer, 7)
        buffer.copy_to(result, stream=stream)
    buffer.close()
    settle(device)
    others = [device.allocate(4, stream=stream) for _ in range(1000)]
    assert address not in [other.handle for other in others]
    executable, handle = ctypes.c_void_p(), ctypes.c_void_p(stream.handle)
    driver.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graphs[0], ctypes.c_ulonglong(0))
    driver.destroy(graphs[0])  # what was made of it is launched
    for _ in range(3):
        words[0] = 0
        driver.call("cuGraphLaunch", executable, handle)
        stream.sync()
        assert words[0] == 7
    for _ in range(20):
        driver.call("cuGraphLaunch", executable, handle)
    driver.call("cuGraphExecDestroy", executable)  # its work runs on, and keeps the memory
    stream.sync()
    settle(device)
    assert words[0] == 7
