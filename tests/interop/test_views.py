"""Arrays in and out: DLPack, CUDA Array Interface, buffer protocol."""

import ctypes
import threading
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import numpy as np
import pytest

from ftcuda import (
    Buffer,
    ClosedError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    StridedMemoryView,
    launch,
)
from ftcuda._objects.arrays.viewable import Viewable
from ftcuda.testing import together

# Its threads would be given the same buffers and write them; the tests that race make threads of their own.
pytestmark = pytest.mark.thread_unsafe(reason="writes the buffers of its fixtures")

COUNT = 96
ONE_BLOCK = LaunchConfig(grid=1, block=COUNT)


class Interface:
    """An array of another library: only what the protocol demands."""

    def __init__(self, buffer, shape=(COUNT,), typestr="<f4", **more):
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (buffer.handle, False),
            "version": 3,
            **more,
        }


class Capsules:
    """An array of another library by DLPack, which notes what it was asked for."""

    def __init__(self, view):
        self.view, self.asked = view, []

    def __dlpack_device__(self):
        return self.view.__dlpack_device__()

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        return self.view.__dlpack__(**keywords)


class OldCapsules(Capsules):
    """A producer from before DLPack 1.0."""

    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        return self.view.__dlpack__(stream=stream)


@pytest.fixture
def floats(device, stream):
    """A device buffer of COUNT floats, 0, 1, 2 ..."""
    buffer = device.allocate(4 * COUNT, stream=stream)
    buffer.copy_from(np.arange(COUNT, dtype="f4"), stream=stream)
    yield buffer
    buffer.close(stream)


@pytest.fixture
def result(device, stream):
    buffer = device.allocate(4 * COUNT, stream=stream)
    yield buffer
    buffer.close(stream)


def read(buffer, stream, dtype="f4"):
    host = np.empty(buffer.size // np.dtype(dtype).itemsize, dtype)
    buffer.copy_to(host, stream=stream)
    return host


def doubled(scale, stream, source, target):
    """What the kernel makes of `source` in the buffer `target`."""
    launch(stream, ONE_BLOCK, scale, source, target, 2.0, COUNT)
    return read(target, stream)


@pytest.fixture(scope="module")
def scale(interop_code):
    return interop_code.get_kernel("scale")


@pytest.mark.parametrize("version", [(), (1,), (1, "0"), 1, "10"])
def test_versions_of_dlpack_are_two_integers(pinned, version):
    buffer, _ = pinned(np.zeros(8, np.uint8))
    with pytest.raises(TypeError, match="max_version must be two integers"):
        buffer.__dlpack__(max_version=version)


def test_an_interface_is_an_argument(scale, stream, floats, result):
    stream.sync()
    assert (doubled(scale, stream, Interface(floats), result) == 2 * np.arange(COUNT)).all()


@pytest.mark.parametrize("strides", ["missing", None, (4,)])
def test_strides(stream, floats, strides):
    more = {} if strides == "missing" else {"strides": strides}
    view = StridedMemoryView.from_cuda_array_interface(Interface(floats, **more), stream)
    assert view.strides == (None if strides in ("missing", None) else (1,))
    assert (view.ptr, view.shape, view.dtype, view.size) == (floats.handle, (COUNT,), np.dtype("f4"), COUNT)
    assert view.is_device_accessible and not view.is_host_accessible and not view.readonly and view.device_id == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_interfaces_are_arguments_and_no_views(scale, stream, floats, result, version):
    """As in cuda.core, whose views need version 3. Launches take them, as Warp's arrays."""
    array = Interface(floats, version=version)
    for make in (
        StridedMemoryView,
        StridedMemoryView.from_cuda_array_interface,
        StridedMemoryView.from_any_interface,
        lambda array, stream: Viewable(array).view(stream),
    ):
        with pytest.raises(BufferError, match=f"version {version}, and a view needs version 3"):
            make(array, stream)
    assert (doubled(scale, stream, array, result) == 2 * np.arange(COUNT)).all()


def test_old_interfaces_of_the_host_are_no_views():
    array = np.zeros(4)
    old = SimpleNamespace(__array_interface__={**array.__array_interface__, "version": 2})
    with pytest.raises(BufferError, match="needs version 3"):
        StridedMemoryView.from_array_interface(old)


def test_a_view_says_in_which_stream_it_is_used(stream, floats):
    """As in cuda.core: None is ambiguous, but for pinned and managed memory by DLPack."""
    made = StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4")
    for array in (Interface(floats), Capsules(made), np.zeros(4)):
        for make in (StridedMemoryView, StridedMemoryView.from_any_interface, lambda array: Viewable(array).view()):
            with pytest.raises(BufferError, match="stream_ptr=None does not say"):
                make(array)
    with pytest.raises(BufferError, match="stream_ptr=None"):
        StridedMemoryView.from_dlpack(Capsules(made))
    with LegacyPinnedMemoryResource().allocate(16) as pinned:
        with pytest.raises(BufferError, match="stream_ptr=None"):
            StridedMemoryView.from_cuda_array_interface(Interface(pinned, (4,)))
        assert StridedMemoryView.from_dlpack(pinned).ptr == pinned.handle
    assert StridedMemoryView(bytearray(4)).size == 4  # by the buffer protocol, which cuda.core's views do not have


def test_the_streams_of_views(stream, floats):
    """0 and 1 are the legacy default stream, as CuPy's and torch's; handles may be of any integer type."""
    handles = ((0, 1), (1, 1), (2, 2), (-1, -1), (np.int64(0), 1), (np.int64(-1), -1))
    for given, asked in (*handles, (stream, stream.handle)):
        producer = Capsules(StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4"))
        assert StridedMemoryView.from_dlpack(producer, given).ptr == floats.handle
        assert producer.asked[-1]["stream"] == asked

    class Default:
        def __cuda_stream__(self):
            return 0, 0

    producer = Capsules(StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4"))
    StridedMemoryView(producer, Default())
    assert producer.asked[-1]["stream"] == 1
    with pytest.raises(BufferError, match="stream 0 does not say"):
        floats.__dlpack__(stream=0)  # which DLPack forbids
    with pytest.raises(BufferError, match="stream 0 does not say"):
        StridedMemoryView(Interface(floats, stream=0), stream)  # which the interface forbids


def test_a_stream_stays_while_a_producer_has_its_handle(device, floats):
    """Mutant: a number that goes to another library without a lease names no stream any more, or a new one."""
    stream = device.create_stream()
    view = StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4")

    class Closing(Capsules):
        def __dlpack__(self, **keywords):
            stream.close()  # as another thread may, at any time
            return super().__dlpack__(**keywords)  # puts its work before that of the handle

    imported = StridedMemoryView.from_dlpack(Closing(view), stream)
    assert stream.is_closed and imported.ptr == floats.handle
    with pytest.raises(ClosedError, match="the stream that it is used in"):
        imported.__cuda_array_interface__
    late = Capsules(view)
    with pytest.raises(ClosedError, match="cannot import Capsules"):
        StridedMemoryView.from_dlpack(late, stream)
    assert late.asked == []


def test_device_types(stream, floats):
    """DLPack's: 2 is device, 3 pinned, 13 managed memory. In and out; the id of host-accessible memory is 0."""
    pinned = LegacyPinnedMemoryResource().allocate(64)
    managed = ManagedMemoryResource().allocate(64, stream=stream)
    for buffer, kind, ordinal in ((floats, 2, 0), (pinned, 3, 0), (managed, 13, 0)):
        made = StridedMemoryView.from_buffer(buffer, (16,), dtype="f4")
        for view in (
            made,
            StridedMemoryView.from_dlpack(made, -1),
            StridedMemoryView.from_dlpack(buffer, -1),
            StridedMemoryView.from_cuda_array_interface(Interface(buffer, (16,)), -1),
            StridedMemoryView.from_any_interface(Interface(buffer, (16,)), -1),
        ):
            assert view.__dlpack_device__() == buffer.__dlpack_device__() == (kind, 0)
            assert view.device_id == ordinal and view.is_device_accessible
            assert view.is_host_accessible == (kind != 2)
    assert StridedMemoryView(np.zeros(4), -1).__dlpack_device__() == (1, 0)
    for buffer in (pinned, managed):
        buffer.close()


def test_an_empty_interface_has_no_address(stream):
    empty = SimpleNamespace(
        __cuda_array_interface__={"shape": (0, 4), "typestr": "<f8", "data": (0, False), "version": 3}
    )
    view = StridedMemoryView.from_cuda_array_interface(empty, -1)
    assert view.ptr == 0 and view.size == 0 and view.shape == (0, 4)


def test_read_only_is_honoured(stream, floats):
    view = StridedMemoryView(Interface(floats, data=(floats.handle, True)), -1)
    assert view.readonly and view.__cuda_array_interface__["data"] == (floats.handle, True)
    with pytest.raises(BufferError, match="read-only"):
        view.__dlpack__(stream=-1)
    assert StridedMemoryView.from_dlpack(view, -1).readonly
    with pytest.raises(ValueError, match="read-only"):
        view.copy_from(StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4"), stream)


@pytest.mark.parametrize("kind", [Capsules, OldCapsules])
def test_a_dlpack_array_is_an_argument(scale, stream, floats, result, kind):
    producer = kind(StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4"))
    assert (doubled(scale, stream, producer, result) == 2 * np.arange(COUNT)).all()
    asked = producer.asked[-1]
    assert (
        asked["stream"] if isinstance(asked, dict) else asked
    ) == stream.handle  # the producer puts itself before it
    stream.sync()  # lets go of the producer, and with it of the lease that its capsule holds


def test_dlpack_round_trip(stream, floats):
    first = StridedMemoryView.from_buffer(floats, (8, 12), dtype="f4")
    second = StridedMemoryView.from_dlpack(first, stream)
    third = StridedMemoryView.from_dlpack(second, stream.handle)
    for view in (second, third):
        assert (view.ptr, view.shape, view.strides, view.dtype) == (floats.handle, (8, 12), (12, 1), np.dtype("f4"))
    assert second.__dlpack_device__() == (2, 0)
    floats.close()
    with pytest.raises(ClosedError):
        StridedMemoryView.from_dlpack(first, stream)
    del first, second, third  # and the memory: the fixture sees that nothing is left


def test_an_unused_capsule_lets_go(floats, stream):
    capsule = floats.__dlpack__(stream=-1, max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    del capsule
    capsule = floats.__dlpack__(stream=-1)
    assert "dltensor" in repr(capsule)
    floats.close()
    del capsule  # and the memory: the fixture sees that nothing is left
    with pytest.raises(ClosedError):
        floats.__dlpack__(stream=-1)


def test_numpy_reads_pinned_memory_without_a_copy(stream):
    with LegacyPinnedMemoryResource().allocate(64) as buffer:
        array = np.from_dlpack(buffer)
        assert array.dtype == np.int8 and array.ctypes.data == buffer.handle
        direct = np.asarray(buffer)
        direct[:] = 7
        assert (array == 7).all() and direct.ctypes.data == buffer.handle
        view = StridedMemoryView.from_buffer(buffer, (4, 4), (1, 4), dtype="f4")
        transposed = np.asarray(view)
        assert transposed.shape == (4, 4) and transposed.strides == (4, 16) and transposed.ctypes.data == buffer.handle
        del array, direct, transposed, view


def test_numpy_arrays_of_views(stream):
    """Without a copy, of every element type; with one where it is asked for."""
    pair = np.dtype([("a", "<i4"), ("b", "<i2"), ("c", "<i2")])
    with LegacyPinnedMemoryResource().allocate(64) as buffer:
        raw = np.frombuffer(buffer, np.uint8)
        raw[:] = np.arange(64)
        for dtype in ("f4", "u8", "?", "c8", ">i4", pair, "V16", "M8[s]", np.dtype([("r", ">f4", (2,))])):
            dtype = np.dtype(dtype)
            view = StridedMemoryView.from_buffer(buffer, (64 // dtype.itemsize,), dtype=dtype)
            array = np.asarray(view)
            assert array.dtype == dtype and array.tobytes() == raw.tobytes() and array.ctypes.data == buffer.handle
            copied = np.array(view)
            assert copied.dtype == dtype and copied.tobytes() == raw.tobytes() and copied.ctypes.data != buffer.handle
        strided = StridedMemoryView.from_buffer(buffer, (2, 3), (4, 1), dtype=pair)
        assert (np.asarray(strided) == raw.view(pair).reshape(2, 4)[:, :3]).all()
        bare = StridedMemoryView.from_buffer(buffer, (), itemsize=8)
        assert np.asarray(bare).shape == () and np.asarray(bare).dtype == np.dtype("V8")
        floats = StridedMemoryView.from_buffer(buffer, (16,), dtype="i4", is_readonly=True)
        assert not np.asarray(floats).flags.writeable
        assert floats.__array__("f8").dtype == np.float64 and floats.__array__("i4", copy=True).flags.writeable
        assert (floats.__array__("f8") == raw.view("i4")).all()
        with pytest.raises(ValueError, match="without a copy"):
            floats.__array__("f8", copy=False)
        with pytest.raises(ValueError, match="without a copy|copy"):
            np.asarray(floats, dtype="f8", copy=False)
        with pytest.raises(BufferError, match="no format"):
            memoryview(bare)
        del array, raw, copied


@pytest.mark.parametrize("dtype", ["f4", [("a", "<i4")]], ids=["floats", "structures"])
@pytest.mark.parametrize(
    "make", [np.asarray, np.array, lambda view: np.asarray(view, "f8"), lambda view: view.__array__()]
)
def test_numpy_refuses_what_the_host_cannot_touch(stream, floats, dtype, make):
    """It never makes an array of one object of it."""
    with pytest.raises(BufferError, match="device memory"):
        make(StridedMemoryView.from_buffer(floats, (COUNT,), dtype=dtype))
    pinned = LegacyPinnedMemoryResource().allocate(64)
    view = StridedMemoryView.from_buffer(pinned, (16,), dtype=dtype)
    pinned.close()
    with pytest.raises(ClosedError):
        make(view)


def test_arrays_race_with_close():
    """A numpy array of a view is the memory, or there is none."""
    resource = LegacyPinnedMemoryResource()

    def work(index, view, buffer):
        if index == 0:
            with suppress(BufferError):  # while an array lives
                buffer.close()
            return
        try:
            array = np.asarray(view)
        except ClosedError:
            return
        assert array.dtype == np.float32 and array.shape == (16,) and (array == 5).all()

    for _ in range(40):
        buffer = resource.allocate(64)
        np.frombuffer(buffer, "f4")[:] = 5
        view = StridedMemoryView.from_buffer(buffer, (16,), dtype="f4")
        together(4, work, view, buffer)
        buffer.close()


def test_the_host_reads_after_the_device_has_written(scale, stream, floats):
    """A consumer that names no stream reads with the host: the export waits."""
    with LegacyPinnedMemoryResource().allocate(4 * COUNT) as pinned:
        launch(stream, ONE_BLOCK, scale, floats, pinned, 3.0, COUNT)
        array = np.from_dlpack(StridedMemoryView.from_buffer(pinned, (COUNT,), dtype="f4"))
        assert (array == 3 * np.arange(COUNT)).all()
        del array


def test_a_pinned_array_is_an_argument_as_numpy_sees_it(scale, stream, floats):
    with LegacyPinnedMemoryResource().allocate(4 * COUNT) as pinned:
        array = np.frombuffer(pinned, "f4")
        launch(stream, ONE_BLOCK, scale, floats, array, 2.0, COUNT)
        stream.sync()
        assert (array == 2 * np.arange(COUNT)).all()
        del array


def test_pageable_memory_is_no_argument_where_the_device_does_not_reach_it(scale, device, stream, floats):
    array = np.zeros(COUNT, "f4")
    if device.properties.pageable_memory_access:
        launch(stream, ONE_BLOCK, scale, floats, array, 2.0, COUNT)
        stream.sync()
        assert (array == 2 * np.arange(COUNT)).all()
        return
    with pytest.raises(TypeError, match="pageable host memory"):
        launch(stream, ONE_BLOCK, scale, floats, array, 2.0, COUNT)


def test_a_copy_to_the_host_on_the_consumers_wish(stream, floats):
    array = np.from_dlpack(StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4"), device="cpu")
    assert (array == np.arange(COUNT)).all()
    with pytest.raises(BufferError, match="forbids a copy"):
        floats.__dlpack__(stream=-1, max_version=(1, 0), dl_device=(1, 0), copy=False)
    copied = StridedMemoryView.from_dlpack(Copying(StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4")), -1)
    assert copied.ptr != floats.handle
    del copied


class Copying(Capsules):
    def __dlpack__(self, **keywords):
        return self.view.__dlpack__(**keywords, copy=True)


def test_interfaces_go_out(stream, floats):
    view = StridedMemoryView.from_buffer(floats, (4, 6), (12, 2), dtype="f4")
    found = view.__cuda_array_interface__
    assert found == {
        "shape": (4, 6),
        "typestr": "<f4",
        "data": (floats.handle, False),
        "strides": (48, 8),
        "version": 3,
        "stream": 1,
    }
    assert StridedMemoryView(Interface(floats), -1).__cuda_array_interface__["stream"] is None
    assert StridedMemoryView(Interface(floats), stream).__cuda_array_interface__["stream"] == stream.handle
    assert floats.__cuda_array_interface__["typestr"] == "|i1"


def test_a_structure_keeps_its_fields(floats):
    dtype = np.dtype([("x", "<f4"), ("y", "<i4")])
    array = Interface(floats, (COUNT // 2,), "|V8", descr=dtype.descr)
    view = StridedMemoryView(array, -1)
    assert view.dtype == dtype and view.__cuda_array_interface__["descr"] == dtype.descr
    with pytest.raises(BufferError, match="no code"):
        view.__dlpack__(stream=-1)


@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_producers_are_kept_until_the_work_is_done(scale, stream, floats, result, held_clock):
    """The array dies with the last reference to it, while the launch that takes it has not begun."""
    gone = []

    class Array(Interface):
        def __del__(self):
            gone.append(self.buffer.handle)

    stream.sync()
    with held_clock():
        launch(stream, ONE_BLOCK, scale, Array(floats), result, 2.0, COUNT)
        result.copy_to(result_of(result), stream=stream)
        assert not gone
    stream.sync()
    assert gone == [floats.handle]


def result_of(buffer):
    return Buffer.from_handle(buffer.handle, buffer.size)


def test_streams_are_ordered(device, scale, stream, floats, result):
    """The consumer's stream waits for the producer's: its kernel sees what the producer wrote."""
    producer = device.create_stream()
    producer.wait(stream)  # which has filled the buffer
    for round in range(20):
        floats.copy_from(np.full(COUNT, round, "f4"), stream=producer)
        array = Interface(floats, stream=producer.handle)
        assert (doubled(scale, stream, array, result) == 2 * round).all()
        producer.wait(stream)
    producer.close()


def test_pageable_copies(device, stream):
    """Sizes around that of the chunks, which copies go through in pieces."""
    chunk = 4 << 20
    for size in (0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk + 17):
        source = np.random.default_rng(size).integers(0, 256, size, "u1")
        with device.allocate(size, stream=stream) as buffer:
            buffer.copy_from(source, stream=stream)
            target = bytearray(size)
            buffer.copy_to(target, stream=stream)
        assert target == source.tobytes()


def test_pageable_copies_from_many_threads(device):
    source = np.arange(1 << 20, dtype="u4")

    def copy(index):
        stream = device.create_stream()
        with device.allocate(source.nbytes, stream=stream) as buffer:
            mine = source + np.uint32(index)
            buffer.copy_from(mine, stream=stream)
            mine[:] = 0  # it has been read
            target = np.empty_like(source)
            buffer.copy_to(target, stream=stream)
            assert (target == source + np.uint32(index)).all()
        stream.close()

    together(8, copy)


def test_copies_between_views(stream, floats, result):
    view = StridedMemoryView.from_buffer(floats, (8, 12), dtype="f4")
    other = StridedMemoryView.from_buffer(result, (8, 12), dtype="f4")
    other.copy_from(view, stream)
    host = np.empty((8, 12), "f4")
    other.copy_to(StridedMemoryView.from_array_interface(host), stream)
    assert (host == np.arange(COUNT).reshape(8, 12)).all()
    other.copy_from(StridedMemoryView.from_array_interface(np.ones((8, 12), "f4")), stream)
    assert (read(result, stream) == 1).all()
    for wrong in (
        StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4"),
        StridedMemoryView.from_buffer(floats, (8, 12), dtype="i4"),
        StridedMemoryView.from_buffer(floats, (8, 12), (1, 8), dtype="f4"),
    ):
        with pytest.raises(ValueError, match="cannot copy"):
            other.copy_from(wrong, stream)


def test_views_of_other_types(floats):
    view = StridedMemoryView.from_buffer(floats, (COUNT,), dtype="f4")
    assert view.view(dtype="i4").dtype == np.int32 and view.view().dtype == np.float32
    with pytest.raises(ValueError, match="elements of 4 bytes"):
        view.view(dtype="f8")
    bare = StridedMemoryView.from_buffer(floats, (COUNT,), itemsize=4)
    assert bare.itemsize == 4 and bare.view(dtype="f4").dtype == np.float32


def test_ctypes_arrays_are_host_memory(device, stream):
    array = (ctypes.c_float * 8)(*range(8))
    with device.allocate(32, stream=stream) as buffer:
        buffer.copy_from(array, stream=stream)
        assert (read(buffer, stream) == np.arange(8)).all()


def test_views_race_with_close(device, stream, scale):
    """Exports and launches of a view beside the close of its buffer: done, or refused, never half."""

    def race(index, view, buffer):
        try:
            if index == 0:
                buffer.close(stream)
            elif index == 1:
                StridedMemoryView.from_dlpack(view, stream)
            else:
                launch(stream, ONE_BLOCK, scale, view, view, 1.0, COUNT)
        except ClosedError:
            pass

    for _ in range(30):
        buffer = device.allocate(4 * COUNT, stream=stream)
        view = StridedMemoryView.from_buffer(buffer, (COUNT,), dtype="f4")
        together(3, race, view, buffer)
        buffer.close(stream)


def test_large_copies_are_one_submission(device, stream):
    """Copies that go in pieces do not mix with others in the same stream."""
    size = (8 << 20) + 64
    with device.allocate(size, stream=stream) as buffer:
        buffer.fill(0, stream=stream)

        def copy(index):
            host = np.full(size, index, "u1")
            for _ in range(6):
                if index < 2:
                    buffer.copy_from(host, stream=stream)
                else:
                    buffer.copy_to(host, stream=stream)
                    assert host[0] == host[size // 2] == host[-1], "half of one copy, half of another"

        together(4, copy)


@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_chunks_are_not_used_twice(device, stream, held_clock):
    """The copies wait while their chunks would be used again. Mutant: without the wait the later bytes arrive twice."""
    with device.allocate(64, stream=stream) as first, device.allocate(64, stream=stream) as second:
        stream.sync()
        with held_clock():
            first.copy_from(b"1" * 64, stream=stream)
            second.copy_from(b"2" * 64, stream=stream)
        assert read(first, stream, "u1").tobytes() == b"1" * 64 and read(second, stream, "u1").tobytes() == b"2" * 64


@pytest.fixture
def waiting_copy(stream, held_clock):
    """For a block, a copy that waits amid its pieces: there are more of them than one copy has chunks."""

    @contextmanager
    def begin(buffer, source):
        stream.sync()
        with held_clock():
            copying = threading.Thread(target=buffer.copy_from, args=(source,), kwargs={"stream": stream})
            copying.start()
            copying.join(0.3)
            assert copying.is_alive()
            yield
        copying.join()

    return begin


PIECES = np.repeat(np.arange(4, dtype="u1"), 4 << 20)


@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_pieces_wait_for_their_chunk(device, stream, waiting_copy):
    """Mutant: without the wait later bytes arrive twice."""
    with device.allocate(PIECES.nbytes, stream=stream) as buffer:
        with waiting_copy(buffer, PIECES):
            pass
        assert (read(buffer, stream, "u1") == PIECES).all()


@pytest.mark.thread_unsafe(reason="stops the simulated device's clock")
def test_nothing_comes_between_pieces(device, stream, waiting_copy):
    """A fill asked for while a copy waits. Mutant: without the section the last pieces overwrite it."""
    with device.allocate(PIECES.nbytes, stream=stream) as buffer:
        with waiting_copy(buffer, PIECES):
            filling = threading.Thread(target=buffer.fill, args=(9,), kwargs={"stream": stream})
            filling.start()
            filling.join(0.3)
        filling.join()
        assert (read(buffer, stream, "u1") == 9).all()


def test_arrays_that_refuse_the_buffer_protocol(floats, stream, interop_code):
    """As CuPy's do: they have the protocol, and raise."""

    class Refusing(Interface):
        def __buffer__(self, flags):
            raise TypeError("not for the host")

    launch(stream, ONE_BLOCK, interop_code.get_kernel("scale"), Refusing(floats), floats, 2.0, COUNT)
    assert (read(floats, stream) == 2 * np.arange(COUNT)).all()


@pytest.mark.thread_unsafe(reason="reads the violations of the whole process")
@pytest.mark.parametrize("protocol", ["dlpack", "interface", "view"])
def test_exports_come_after_the_work(device, floats, stream, held_clock, protocol):
    """Work in two streams, of which the consumer knows neither. Mutant: without the events the oracle reports a race."""
    from ftcuda.testing import simulation

    other, consumer = device.create_stream(), device.create_stream()
    stream.sync()
    other.wait(stream)
    with simulation.watched_races():
        with held_clock():
            floats.fill(1, stream=other)
            stream.wait(other)
            floats.fill(2, stream=stream)
            if protocol == "view":
                StridedMemoryView.from_dlpack(StridedMemoryView.from_dlpack(floats, stream), consumer)
            elif protocol == "dlpack":
                StridedMemoryView.from_dlpack(floats, consumer)
            else:
                StridedMemoryView.from_cuda_array_interface(floats, consumer)
            floats.fill(3, stream=consumer)
        device.sync()
    assert simulation.violations() == []
    for made in (other, consumer):
        made.close()


@pytest.mark.parametrize("by_view", [False, True])
def test_a_view_by_the_interface_holds_our_buffer(stream, by_view):
    """The interface keeps nothing alive; of a buffer of ours the view does. Mutant: without the lease the memory is gone."""
    buffer = LegacyPinnedMemoryResource().allocate(64)
    source = StridedMemoryView.from_buffer(buffer, (16,), dtype="f4") if by_view else buffer
    view = StridedMemoryView.from_cuda_array_interface(source, stream)
    assert view.ptr == buffer.handle
    buffer.close()
    np.from_dlpack(view)[:] = 5
    with pytest.raises(ClosedError):
        StridedMemoryView.from_cuda_array_interface(buffer, stream)


@pytest.mark.parametrize("dtype", [">f4", [("a", ">f4")], [("a", [("b", ">f4", (1,))])]])
def test_the_other_byte_order_is_for_the_host(scale, stream, floats, dtype):
    """Mutant: a kernel writes in one byte order what is read in the other."""
    bare = StridedMemoryView.from_buffer(floats, (1,), itemsize=4)
    for view in (StridedMemoryView.from_buffer(floats, (1,), dtype=dtype), bare.view(dtype=np.dtype(dtype))):
        with pytest.raises(TypeError, match="other byte order"):
            launch(stream, LaunchConfig(grid=1, block=1), scale, view, view, 1.0, 1)


@pytest.mark.parametrize("dtype", ["O", [("a", "O")], "V0"])
def test_elements_that_memory_cannot_have(floats, dtype):
    with pytest.raises(TypeError, match="cannot have elements"):
        StridedMemoryView.from_buffer(floats, (1,), dtype=dtype)
    with pytest.raises(TypeError, match="cannot have elements"):
        StridedMemoryView.from_buffer(floats, (1,), itemsize=8).view(dtype=np.dtype(dtype))
