"""Exports and imports in order: who reads comes after the work, whatever protocol and whatever stream it asks by.

Each test names the mutant in stress/mutation/mutants.toml that it notices.
"""

import ctypes
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest

import ftcuda
from ftcuda import ClosedError, LegacyPinnedMemoryResource, StridedMemoryView
from ftcuda.testing import faults, simulation, together
from tests.conftest import simulated_only
from tests.kernels import IS_SIMULATED
from tests.promise.test_orders import beside

pytestmark = [simulated_only, pytest.mark.thread_unsafe(reason="stops the simulated device's clock")]

COUNT = 64
POINTS = np.dtype([("x", "u1"), ("y", "u1")])


class Producer:
    """Another library's array, by DLPack alone."""

    def __init__(self, view):
        self.view = view

    def __dlpack_device__(self):
        return self.view.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.view.__dlpack__(**keywords)


def interface(buffer, stream=None, **more):
    """Another library's array, by the CUDA Array Interface alone."""
    data = (buffer.handle, False)
    handle = None if stream is None else stream.handle
    described = {"shape": (COUNT,), "typestr": "|u1", "data": data, "version": 3, "stream": handle, **more}
    return SimpleNamespace(__cuda_array_interface__=described)


def view_of(buffer):
    return StridedMemoryView.from_buffer(buffer, (COUNT,), dtype="u1")


@pytest.fixture
def world(device, stream):
    """Pinned and device memory whose bytes are 1, a stream for their work, and one more."""
    pinned, on_device = LegacyPinnedMemoryResource().allocate(COUNT), device.allocate(COUNT, stream=stream)
    other = device.create_stream()
    for buffer in (pinned, on_device):
        buffer.fill(1, stream=stream)
    device.sync()
    yield SimpleNamespace(pinned=pinned, on_device=on_device, stream=stream, other=other, view=view_of(pinned))
    device.sync()
    for thing in (pinned, on_device, other):
        thing.close()


# ---- The host --------------------------------------------------------------------------------------------------------


def after(export):
    """Reads the pinned memory once an export or import of it has returned."""

    def prepare(world):
        def read():
            kept = export(world)
            found = ctypes.string_at(world.pinned.handle, COUNT)
            del kept
            return found

        return read

    return prepare


def whole(view_to_array):
    return lambda world: lambda: view_to_array(world).tobytes()


def array_of(make_view):
    """Reads a view that is made before the work is submitted."""

    def prepare(world):
        view = make_view(world)
        return lambda: np.asarray(view).tobytes()

    return prepare


def copied(copy):
    """Reads what a copy puts into an array."""

    def prepare(world):
        host = np.zeros(COUNT, "u1")
        return lambda: (copy(world, host), host.tobytes())[1]

    return prepare


def to_host_view(world, host):
    world.view.copy_to(StridedMemoryView.from_array_interface(host), stream=world.stream)


def from_host_view(world):
    sevens = StridedMemoryView.from_array_interface(np.full(COUNT, 7, "u1"))
    world.view.copy_from(sevens, world.stream)


# How the host reads, and the driver's call in which it must be found before the work is done: where no stream of
# the work is left to wait for, the consumer waits; elsewhere a stream does first.
SYNC, CHUNK, ORDER = "cuStreamSynchronize", "cuEventSynchronize", "cuStreamWaitEvent"
READS = {
    "from_dlpack(view)": (SYNC, whole(lambda w: np.from_dlpack(w.view))),
    "from_dlpack(buffer)": (SYNC, whole(lambda w: np.from_dlpack(w.pinned))),
    "from_dlpack(view, copy=True)": (SYNC, whole(lambda w: np.from_dlpack(w.view, copy=True))),
    "from_dlpack(device memory, device='cpu')": (SYNC, whole(lambda w: np.from_dlpack(w.on_device, device="cpu"))),
    "asarray(view)": (SYNC, whole(lambda w: np.asarray(w.view))),
    "asarray(view of structures)": (SYNC, whole(lambda w: np.asarray(StridedMemoryView.from_buffer(w.pinned, (32,), dtype=POINTS)))),
    "array(view)": (SYNC, whole(lambda w: np.array(w.view))),
    "memoryview(view)": (SYNC, whole(lambda w: memoryview(w.view))),
    "a capsule without version": (SYNC, after(lambda w: w.view.__dlpack__())),
    "a capsule of a buffer": (SYNC, after(lambda w: w.pinned.__dlpack__(max_version=(1, 0)))),
    "an import without order": (SYNC, after(lambda w: StridedMemoryView.from_dlpack(Producer(w.view), -1))),
    "an import in a stream": (SYNC, after(lambda w: StridedMemoryView.from_dlpack(Producer(w.view), w.other))),
    "an imported view": (ORDER, array_of(lambda w: StridedMemoryView.from_dlpack(Producer(w.view), w.stream))),
    "a view of an interface": (ORDER, array_of(lambda w: StridedMemoryView(interface(w.pinned), w.stream))),
    "a view of opaque elements": (ORDER, array_of(lambda w: StridedMemoryView(interface(w.pinned, typestr="|V1"), w.stream))),
    "Buffer.copy_to": (CHUNK, copied(lambda w, host: w.pinned.copy_to(host, stream=w.stream))),
    "Buffer.copy_to of device memory": (CHUNK, copied(lambda w, host: w.on_device.copy_to(host, stream=w.stream))),
    "StridedMemoryView.copy_to": (CHUNK, copied(to_host_view)),
    "StridedMemoryView.copy_from": (SYNC, after(from_host_view)),
}  # fmt: skip


@pytest.mark.parametrize("way", READS)
def test_the_host_reads_after_the_work(way, world):
    """The device stands still until the reader was found waiting: who does not wait reads what was there before.

    Mutant: host-exports-do-not-wait, imports-of-pinned-memory-are-early,
    copied-views-forget-their-stream, copies-of-pageable-memory-do-not-wait.
    """
    entry, prepare = READS[way]
    read = prepare(world)
    with simulation.held_clock(), faults.holding(entry) as wait, ExitStack() as stack:
        if entry == ORDER:  # who is not ordered would wait here for ever
            unordered = stack.enter_context(faults.failing(SYNC, 999))
        for buffer in (world.pinned, world.on_device):
            buffer.fill(7, stream=world.stream)

        def go_on(finish):
            if entry == ORDER:
                unordered.release()
            simulation.release_clock()
            finish()

        assert beside(wait, read, go_on) == bytes([7]) * COUNT


def test_a_copy_for_a_consumer_is_waited_for(world):
    """A wait that fails is a wait. Not in the main thread, which asks again and again.

    Mutant: copies-for-export-are-handed-out-unfinished.
    """

    def export(index):
        with faults.failing(SYNC, 999) as fault:
            with pytest.raises(ftcuda.CUDAError) as raised:
                world.on_device.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
            assert fault.hits == 1 and raised.value.entry_point == SYNC

    together(1, export)


# ---- Streams ---------------------------------------------------------------------------------------------------------


def in_the_legacy_stream(world):
    """A consumer that is told of stream 1, and works there."""
    assert world.on_device.__cuda_array_interface__["stream"] == 1
    return ftcuda.LEGACY_DEFAULT_STREAM


def imported(world):
    """A view of another library's, whose work is in the stream of the view."""
    view = StridedMemoryView(interface(world.on_device), world.stream)
    world.on_device.fill(2, stream=world.stream)
    return view


def waits(world, function):
    function(world)
    return world.other


# What puts the stream that is returned behind the work in `world.stream`.
ORDERS = {
    "an export to a stream": lambda w: waits(w, lambda w: w.on_device.__dlpack__(stream=w.other.handle)),
    "an export to the legacy stream": lambda w: (w.on_device.__dlpack__(stream=1), ftcuda.LEGACY_DEFAULT_STREAM)[1],
    "an export to no stream": lambda w: (w.on_device.__dlpack__(), ftcuda.LEGACY_DEFAULT_STREAM)[1],
    "an interface": in_the_legacy_stream,
    "an export of another's memory": lambda w: waits(w, lambda w: imported(w).__dlpack__(stream=w.other.handle)),
    "an import by DLPack": lambda w: waits(w, lambda w: StridedMemoryView.from_dlpack(Producer(view_of(w.on_device)), w.other)),
    "an import of an interface": lambda w: waits(w, lambda w: StridedMemoryView(interface(w.on_device, w.stream), w.other)),
    "Stream.wait(stream)": lambda w: waits(w, lambda w: w.other.wait(w.stream)),
    "Stream.wait(event)": lambda w: waits(w, lambda w: w.other.wait(w.stream.record())),
    "a copy for a consumer": lambda w: waits(w, lambda w: (np.from_dlpack(w.on_device, device="cpu"), w.other.wait(w.stream))),
    "a copy beside the original": lambda w: waits(w, lambda w: (w.on_device.__dlpack__(copy=True), w.other.wait(w.stream))),
}  # fmt: skip


@pytest.mark.parametrize("way", ORDERS)
def test_streams_come_after_the_work(way, device, world):
    """Work of a second stream on the same bytes. Whatever happened to run first, the oracle reports what has no order.

    Mutant: exports-are-ordered-in-the-default-stream, interfaces-wait-for-nothing, interfaces-name-no-stream,
    exports-of-others-memory-wait-the-wrong-way, imports-wait-the-wrong-way, imports-by-dlpack-have-no-order,
    streams-wait-for-themselves, copies-for-export-start-early.
    """
    with simulation.watched_races():
        world.on_device.fill(1, stream=world.stream)
        consumer = ORDERS[way](world)
        world.on_device.fill(3, stream=consumer)
        device.sync()
    assert simulation.violations() == []
    assert np.from_dlpack(world.on_device, device="cpu").tobytes() == bytes([3]) * COUNT


def test_a_consumer_waits_for_all_streams_or_is_told(device, world):
    """Of two streams' work the first cannot be waited for: that the second can must not hide it.

    Mutant: exports-forget-the-first-failure, exports-skip-the-home-stream.
    """
    third = device.create_stream()
    third.wait(world.stream)
    world.on_device.fill(2, stream=third)
    for nth in (1, 2):
        with faults.failing("cuStreamWaitEvent", 999, nth=nth) as fault:
            with pytest.raises(ftcuda.CUDAError) as raised:
                world.on_device.__dlpack__(stream=world.other.handle)
            assert fault.hits == 1 and raised.value.entry_point == "cuStreamWaitEvent"
    third.close()


def test_a_consumer_does_not_join_a_capture(world):
    """What a captured stream did with the memory is part of a graph: nobody outside can wait for it.

    Mutant: exports-enter-captures.
    """
    driver = ctypes.CDLL(ftcuda.driver_info().path)
    capturing, graph, state = ctypes.c_void_p(world.stream.handle), ctypes.c_void_p(), ctypes.c_int(-1)
    assert driver.cuStreamBeginCapture_v2(capturing, 2) == 0
    try:
        world.pinned.fill(5, stream=world.stream)
        if IS_SIMULATED:
            records = simulation.calls("cuEventRecord")
        with pytest.raises(ftcuda.CUDAError, match="captur"):
            world.pinned.__dlpack__(stream=world.other.handle)
        if IS_SIMULATED:  # nothing is recorded in the stream of another one's capture: on a GPU that may crash
            assert simulation.calls("cuEventRecord") == records
        assert driver.cuStreamIsCapturing(ctypes.c_void_p(world.other.handle), ctypes.byref(state)) == 0
        assert state.value == 0
    finally:
        assert driver.cuStreamEndCapture(capturing, ctypes.byref(graph)) == 0
        assert driver.cuGraphDestroy(graph) == 0
    assert np.from_dlpack(world.pinned).tobytes() == bytes([1]) * COUNT


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
def test_a_closed_stream_orders_nothing(world, device, protocol):
    """A view whose stream is closed cannot say what comes after the work in it."""
    gone = device.create_stream()
    view = StridedMemoryView(interface(world.on_device), gone)
    gone.close()
    with pytest.raises(ClosedError):
        view.__dlpack__(stream=world.other.handle) if protocol == "dlpack" else view.__cuda_array_interface__


def test_a_producer_that_raises_keeps_no_stream(world, device):
    """It had the handle of a stream, under a lease. Mutant: producers-that-raise-keep-the-stream."""

    class Raising(Producer):
        def __dlpack__(self, **keywords):
            raise RuntimeError("not today")

    before = simulation.live()["stream"]
    for _ in range(3):
        stream = device.create_stream()
        with pytest.raises(RuntimeError, match="not today"):
            StridedMemoryView.from_dlpack(Raising(view_of(world.on_device)), stream)
        stream.close()
    assert simulation.live()["stream"] == before
