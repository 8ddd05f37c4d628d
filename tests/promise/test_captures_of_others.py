"""Others may begin to capture a stream at any moment, once they have its handle: also amid what the core does in it of its own accord.

Each act is held before and behind each call that it makes of the driver. Meanwhile others begin a capture, or begin and end one. Their
graph is whole and has nothing of the act, the stream works as before, and what was in use goes.
"""

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as futures_wait
from contextlib import ExitStack
from itertools import count
from time import monotonic

import numpy as np
import pytest

import ftcuda
from ftcuda import Buffer, LaunchConfig, launch
from ftcuda.memory import wait_for_deallocations
from ftcuda.testing import faults, simulation
from tests.conftest import simulated_only

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="plans faults for all threads, and captures")]

ONE = LaunchConfig(grid=1, block=1)
RELAXED = 2  # CUstreamCaptureMode
DRIVER = tuple(map(int, ftcuda.driver_info().version.split(".")))
# What acts call that a capture may meet.
ENTRIES = (
    "cuStreamIsCapturing",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuMemFreeAsync",
    "cuMemFree_v2",
    "cuMemFreeHost",
)


class Others:
    """Who captures a stream by the driver itself."""

    def __init__(self):
        if DRIVER < (11, 3):
            pytest.skip(reason="before 11.3 nobody can give a graph something to keep")
        self.library = ctypes.CDLL(ftcuda.driver_info().path)

    def begin(self, stream):
        assert self.library.cuStreamBeginCapture_v2(ctypes.c_void_p(stream.handle), RELAXED) == 0

    def end(self, stream):
        """The number of nodes of the graph, which is whole."""
        graph, number = ctypes.c_void_p(), ctypes.c_size_t()
        assert self.library.cuStreamEndCapture(ctypes.c_void_p(stream.handle), ctypes.byref(graph)) == 0
        assert self.library.cuGraphGetNodes(graph, None, ctypes.byref(number)) == 0
        assert self.library.cuGraphDestroy(graph) == 0
        return number.value


@pytest.fixture
def others(device):
    return Others()


class Scene:
    """A stream that others capture, another one, and resources whose accounts say what is in use."""

    def __init__(self, device, code):
        self.device, self.store = device, code.get_kernel("store")
        self.stream, self.other = device.create_stream(), device.create_stream()
        self.accounts = []  # functions that say how much is in use
        self.word = ftcuda.LegacyPinnedMemoryResource().allocate(4)

    def of(self, resource):
        counted = ftcuda.StatisticsMemoryResource(resource)
        self.accounts.append(lambda: counted.statistics.current_count)
        return counted

    def cache(self, upstream):
        cache = ftcuda.CachingMemoryResource(upstream)

        def count():
            cache.trim()  # of what came to it late
            return cache.statistics.in_use_count + cache.statistics.cached_count

        self.accounts.append(count)
        return cache

    def pool(self):
        if not self.device.features.memory_pools:
            pytest.skip(reason="this driver profile has no memory pools")
        return ftcuda.DeviceMemoryResource(self.device)

    def in_use(self):
        return sum(count() for count in self.accounts)

    def wait_until_gone(self):
        """What held memory of others is let go of by another thread."""
        end = monotonic() + 20
        while self.in_use() and monotonic() < end:
            wait_for_deallocations()
        assert self.in_use() == 0

    def close(self):
        """The stream works as before, and nothing is in use."""
        launch(self.stream, ONE, self.store, self.word, 7)
        self.stream.sync()
        assert np.frombuffer(self.word, np.int32)[0] == 7
        settle(self.device)
        self.wait_until_gone()
        self.stream.close()
        self.other.close()


def used_in_the_stream(scene):
    buffer = scene.of(scene.pool()).allocate(64, stream=scene.other)
    scene.stream.wait(scene.other)
    buffer.fill(1, stream=scene.stream)
    return buffer.close


def made_in_the_stream(scene):
    buffer = scene.of(scene.pool()).allocate(64, stream=scene.stream)
    buffer.fill(1, stream=scene.stream)
    return buffer.close


def made_in_the_stream_and_used_in_another(scene):
    buffer = scene.of(scene.pool()).allocate(64, stream=scene.stream)
    scene.other.wait(scene.stream)
    buffer.fill(1, stream=scene.other)
    return buffer.close


def pinned(scene):
    buffer = scene.of(ftcuda.LegacyPinnedMemoryResource()).allocate(64)
    buffer.fill(1, stream=scene.stream)
    return buffer.close


def plain(scene):
    buffer = scene.of(ftcuda.SynchronousMemoryResource(scene.device)).allocate(64)
    buffer.fill(1, stream=scene.stream)
    return buffer.close


def cached(scene, upstream, is_shared):
    cache = scene.cache(upstream)
    buffer = cache.allocate(64, stream=scene.stream)
    buffer.fill(1, stream=scene.stream)
    if is_shared:
        scene.other.wait(scene.stream)
        buffer.fill(1, stream=scene.other)

    def act():
        buffer.close()
        cache.trim()

    return act


def cached_of_plain_memory(scene, is_shared=False):
    return cached(scene, ftcuda.SynchronousMemoryResource(scene.device), is_shared)


def cached_of_a_pool(scene, is_shared=False):
    return cached(scene, scene.pool(), is_shared)


def cached_of_pinned_memory(scene, is_shared=False):
    return cached(scene, ftcuda.LegacyPinnedMemoryResource(), is_shared)


def cached_of_plain_memory_and_used_in_another(scene):
    return cached_of_plain_memory(scene, is_shared=True)


def cached_of_a_pool_and_used_in_another(scene):
    return cached_of_a_pool(scene, is_shared=True)


def cached_of_pinned_memory_and_used_in_another(scene):
    return cached_of_pinned_memory(scene, is_shared=True)


def staged(scene):
    pool = ftcuda.StagingPool(scene.device, 4096)
    buffer = pool.lease(64)
    buffer.fill(1, stream=scene.stream)

    def act():
        buffer.close()
        pool.close()

    return act


def of_an_owner(scene):
    memory = scene.of(ftcuda.LegacyPinnedMemoryResource()).allocate(64)
    buffer = Buffer.from_handle(memory.handle, 64, owner=memory)
    buffer.fill(1, stream=scene.stream)
    buffer.fill(1, stream=scene.other)
    del memory

    def act():
        buffer.close()

    return act


def graph_of(scene, buffer):
    builder = scene.device.create_graph_builder().begin_building()
    launch(builder, ONE, scene.store, buffer, 1)
    return builder.end_building()


def graph(scene):
    made = graph_of(scene, scene.of(ftcuda.LegacyPinnedMemoryResource()).allocate(64)).complete()
    made.launch(scene.stream)
    return made.close


def updated_graph(scene):
    resource = scene.of(ftcuda.LegacyPinnedMemoryResource())
    made = graph_of(scene, resource.allocate(64)).complete()
    made.launch(scene.stream)
    successor = graph_of(scene, resource.allocate(64))

    def act():
        made.update(successor)
        made.close()
        successor.close()

    return act


ACTS = [
    used_in_the_stream,
    made_in_the_stream,
    made_in_the_stream_and_used_in_another,
    pinned,
    plain,
    cached_of_plain_memory,
    cached_of_plain_memory_and_used_in_another,
    cached_of_a_pool,
    cached_of_a_pool_and_used_in_another,
    cached_of_pinned_memory,
    cached_of_pinned_memory_and_used_in_another,
    staged,
    of_an_owner,
    graph,
    updated_graph,
]


def skip_unless_made(prepare, device):
    if prepare in (graph, updated_graph) and not device.features.graphs:
        pytest.skip(reason="graphs need a driver of CUDA 11.4")
    if prepare is updated_graph and DRIVER < (12, 0):
        pytest.skip(reason="updates of graphs need a driver of CUDA 12")


def is_held(fault, acting):
    """Whether the act is held; not if it ended without such a call."""
    while not fault.waiting and not acting.done():
        futures_wait([acting], timeout=0.001)
    return not acting.done()


def race(device, code, others, prepare, entry, nth, after, way):
    """One act, held at one call. Whether there was such a call."""
    scene = Scene(device, code)
    is_shared = way != "by a handle that was nobody's"
    if is_shared:
        assert scene.stream.handle
    act = prepare(scene)
    with ThreadPoolExecutor(1) as actor, ThreadPoolExecutor(1) as pool:
        thread = actor.submit(simulation.this_thread).result()
        with faults.holding(entry, nth=nth, thread=thread, after=after) as fault:
            acting = actor.submit(act)
            held = is_held(fault, acting)
            if held:
                beginning = pool.submit(others.begin, scene.stream)
                futures_wait([beginning], timeout=60 if is_shared else 0.02)  # else it waits for who is alone
                if way == "begun and ended":
                    assert others.end(scene.stream) == 0
            fault.release()
            acting.result(60)
            if held:
                beginning.result(60)
    if held and way != "begun and ended":
        assert others.end(scene.stream) == 0
    scene.close()
    return held


@pytest.mark.parametrize("way", ["begun", "begun and ended", "by a handle that was nobody's"])
@pytest.mark.parametrize("prepare", ACTS)
def test_an_act_and_a_capture_that_begins(device, code, others, prepare, way):
    skip_unless_made(prepare, device)
    met = 0
    for entry in ENTRIES:
        for after in (False, True):
            for nth in count(1):
                if not race(device, code, others, prepare, entry, nth, after, way):
                    break
                met += 1
    assert met >= 2


@pytest.mark.parametrize("prepare", ACTS)
def test_what_is_closed_amid_a_capture_goes_by_itself(device, code, others, prepare):
    """When that is over, though nobody waits for anything."""
    skip_unless_made(prepare, device)
    scene = Scene(device, code)
    act = prepare(scene)
    others.begin(scene.stream)
    act()
    del act
    assert others.end(scene.stream) == 0
    scene.wait_until_gone()
    scene.close()


def act_while_captured(others, stream, act):
    """The event that the act records is of a capture that others began before and ended behind that."""
    with faults.holding("cuEventRecord") as before, faults.holding("cuEventRecord", after=True) as behind, ThreadPoolExecutor(1) as actor:
        acting = actor.submit(act)
        before.wait()
        others.begin(stream)
        before.release()
        behind.wait()
        assert others.end(stream) == 0
        behind.release()
        acting.result(60)


def test_a_lease_that_met_a_capture_comes_back(device, others):
    """Mutant: the event behind it was that capture's, and nobody ever hears that it is reached."""
    stream = device.create_stream()
    assert stream.handle
    pool = ftcuda.StagingPool(device, 4096)
    buffer = pool.lease(4096)
    buffer.fill(1, stream=stream)
    act_while_captured(others, stream, buffer.close)
    device.sync()
    pool.lease(4096, timeout=20).close()
    pool.close()
    stream.close()


def test_a_piece_of_a_cache_that_met_a_capture_goes_back(device, others):
    """Mutant: marks-that-last-are-not-asked."""
    stream = device.create_stream()
    assert stream.handle
    cache = ftcuda.CachingMemoryResource(ftcuda.LegacyPinnedMemoryResource())
    buffer = cache.allocate(64, stream=stream)
    buffer.fill(1, stream=stream)
    act_while_captured(others, stream, buffer.close)
    assert cache.statistics.cached_count == 0  # nothing would say that its event is reached
    device.sync()
    assert cache.statistics.in_use_count == 0
    cache.close()
    stream.close()


def test_the_mark_of_a_capture_is_lent_to_nobody(device, code, others):
    """While it goes on. A GPU's driver crashes; the simulated one reports it."""
    scene = Scene(device, code)
    assert scene.stream.handle
    act = pinned(scene)
    with faults.holding("cuEventRecord") as fault, ThreadPoolExecutor(1) as pool:
        acting = pool.submit(act)
        fault.wait()
        others.begin(scene.stream)
        fault.release()
        acting.result(60)
    for _ in range(3):
        scene.other.wait(device.create_stream())
    others.end(scene.stream)
    scene.close()


def test_an_event_of_a_running_capture_is_recorded_by_nobody_else(device, others):
    """A GPU's driver crashes; the simulated one reports it."""
    first, second, event = device.create_stream(), device.create_stream(), device.create_event()
    others.begin(first)
    first.record(event)
    with pytest.raises(RuntimeError, match="use another event"):
        second.record(event)
    first.record(event)  # of the same capture, as the other one is, once it has joined
    second.wait(event)
    second.record(event)
    first.wait(event)
    others.end(first)
    second.record(event)
    event.sync()
    assert event.is_done


def test_a_record_in_a_capture_waits_for_those_before_it(device, others):
    """Mutant: another thread, in the driver already, records an event that a capture has by then."""
    first, second, event = device.create_stream(), device.create_stream(), device.create_event()
    others.begin(first)
    with faults.holding("cuEventRecord") as fault, ThreadPoolExecutor(2) as pool:
        before = pool.submit(second.record, event)
        fault.wait()
        captured = pool.submit(first.record, event)
        assert not futures_wait([captured], timeout=0.2).done
        fault.release()
        before.result(60)
        captured.result(60)
    with pytest.raises(RuntimeError, match="use another event"):
        second.record(event)
    others.end(first)


def test_memory_made_in_a_capture_that_begins_is_its_graphs(device, others):
    """It is freed there, and refused to who asked for it."""
    if not device.features.memory_pools:
        pytest.skip(reason="this driver profile has no memory pools")
    stream = device.create_stream()
    assert stream.handle
    with faults.holding("cuMemAllocFromPoolAsync") as fault, ThreadPoolExecutor(1) as pool:
        made = pool.submit(ftcuda.DeviceMemoryResource(device).allocate, 64, stream=stream)
        fault.wait()
        others.begin(stream)
        fault.release()
        with pytest.raises(ftcuda.CUDAError, match="being captured"):
            made.result(60)
    assert others.end(stream) == 2
    stream.close()


def launch_with(array, stream, code):
    launch(stream, ONE, code.get_kernel("store"), array, 1)


def fill(array, stream, code):
    array.buffer.fill(1, stream=stream)
    array.buffer.close()


@pytest.mark.parametrize(
    ("submit", "entries"), [(launch_with, ["cuLaunchKernelEx", "cuLaunchKernel"]), (fill, ["cuMemsetD8Async"])]
)
def test_what_a_capture_took_that_began_amid_a_submission_is_its_graphs(device, code, others, submit, entries):
    """Mutant: it is freed when the submission returns, or its work would be done, and the graph uses it still."""
    stream, graph = device.create_stream(), ctypes.c_void_p()
    assert stream.handle
    resource = ftcuda.StatisticsMemoryResource(ftcuda.LegacyPinnedMemoryResource())
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        known = [entry for entry in entries if entry in simulation.entries()]
        held = [stack.enter_context(faults.holding(entry)) for entry in known]
        submitting = pool.submit(submit, Memory(resource.allocate(64)), stream, code)
        while not any(fault.waiting for fault in held):
            futures_wait([submitting], timeout=0.001)
        others.begin(stream)
        for fault in held:
            fault.release()
        submitting.result(60)
        del submitting
    assert others.library.cuStreamEndCapture(ctypes.c_void_p(stream.handle), ctypes.byref(graph)) == 0
    settle(device)
    assert resource.statistics.current_count == 1
    assert others.library.cuGraphDestroy(graph) == 0
    settle(device)
    assert resource.statistics.current_count == 0
    stream.close()


def test_an_event_of_a_stream_that_is_closed_amid_its_capture(device, others):
    """Which ends that, so that others may record the event again."""
    first, second, event = device.create_stream(), device.create_stream(), device.create_event()
    others.begin(first)
    first.record(event)
    first.close()
    assert simulation.violations() == ["stream destroyed while it captures"]
    simulation.clear_violations()
    second.record(event)
    event.sync()
    assert event.is_done


def test_streams_that_others_may_capture_leave_a_buffer(device):
    """Mutant: each of them lives as long as the buffer."""
    weights = ftcuda.LegacyPinnedMemoryResource().allocate(64)
    before = simulation.live()["stream"]
    for _ in range(100):
        passing = device.create_stream()
        assert passing.handle
        weights.fill(1, stream=passing)
        passing.sync()
        passing.close()
    assert simulation.live()["stream"] <= before + 16


class Memory:
    """An array of others, which keeps a buffer."""

    def __init__(self, buffer):
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": (16,),
            "typestr": "<i4",
            "data": (int(buffer.handle), False),
            "version": 3,
        }


def settle(device):
    device.sync()
    gc.collect()
    wait_for_deallocations()
