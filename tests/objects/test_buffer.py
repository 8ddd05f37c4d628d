import numpy as np
import pytest

from ftcuda import (
    Buffer,
    ClosedError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    launch,
)
from ftcuda.testing import simulation
from tests.conftest import simulated_only


def test_round_trip(device, stream, pinned):
    source, _ = pinned(np.arange(1000, dtype=np.float64))
    target, view = pinned(np.zeros(1000))
    buffer = device.allocate(source.size, stream=stream)
    buffer.copy_from(source, stream=stream)
    buffer.copy_to(stream=stream).copy_to(target, stream=stream)
    stream.sync()
    assert np.array_equal(view, np.arange(1000))
    buffer.close(stream)


@pytest.mark.parametrize(
    ("value", "expected"), [(5, b"\5" * 8), (b"\1\2", b"\1\2" * 4), (np.uint32(0x04030201), b"\1\2\3\4" * 2)]
)
def test_fill(device, stream, pinned, value, expected):
    host, _ = pinned(np.zeros(8, np.uint8))
    buffer = device.allocate(8, stream=stream)
    buffer.fill(value, stream=stream)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    assert bytes(host) == expected


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (256, OverflowError, "0 to 255"),
        (-1, OverflowError, "0 to 255"),
        (b"abc", ValueError, "1, 2 or 4"),
        (b"abcd", ValueError, "multiple"),
        (1.5, TypeError, "bytes-like"),
    ],
)
def test_bad_fills(device, stream, value, error, words):
    buffer = device.allocate(6, stream=stream)
    with pytest.raises(error, match=words):
        buffer.fill(value, stream=stream)


def test_zero_bytes(device, stream):
    buffer = device.allocate(0, stream=stream)
    assert (buffer.handle, buffer.size) == (0, 0)
    buffer.fill(1, stream=stream)
    buffer.copy_to(device.allocate(0, stream=stream), stream=stream)
    buffer.close()


@pytest.mark.parametrize(
    ("size", "error"), [(-1, ValueError), (2**63, ValueError), (1.0, TypeError), (None, TypeError), (True, TypeError)]
)
def test_bad_sizes(device, stream, size, error):
    with pytest.raises(error, match="size"):
        device.allocate(size, stream=stream)


def test_copies_between_sizes_are_refused(device, stream):
    with pytest.raises(ValueError, match="sizes differ"):
        device.allocate(8, stream=stream).copy_to(device.allocate(9, stream=stream), stream=stream)
    with pytest.raises(TypeError, match="buffer protocol"):
        device.allocate(8, stream=stream).copy_from(12345678, stream=stream)


@simulated_only
@pytest.mark.thread_unsafe(reason="counts the allocations of the whole process")
def test_the_memory_goes_with_the_last_view():
    """Mutant: views without a lease, and the memory goes with close()."""
    before = simulation.live()["pinned_allocation"]
    buffer = LegacyPinnedMemoryResource().allocate(32)
    views = [np.frombuffer(buffer, np.int64), memoryview(buffer), np.from_dlpack(buffer)]
    views[0][:] = range(4)
    buffer.close()
    assert buffer.is_closed and buffer.handle == 0 and buffer.memory_resource is None
    for use in (lambda: memoryview(buffer), lambda: np.from_dlpack(buffer), lambda: np.asarray(buffer)):
        with pytest.raises(ClosedError):
            use()
    while views:
        assert simulation.live()["pinned_allocation"] == before + 1
        assert bytes(views.pop()) == np.arange(4).tobytes()
    assert simulation.live()["pinned_allocation"] == before


def test_device_memory_has_no_view(device, stream):
    buffer = device.allocate(4, stream=stream)
    with pytest.raises(BufferError, match="device memory"):
        memoryview(buffer)
    for make in (np.asarray, np.array, lambda buffer: np.add(buffer, 1)):
        with pytest.raises(BufferError, match="device memory"):
            make(buffer)  # and not an array of one object
    buffer.close()
    with pytest.raises(BufferError, match="device memory"):
        np.asarray(buffer)


def test_equality_is_of_handle_and_size(device, stream):
    buffer, other = device.allocate(64, stream=stream), device.allocate(64, stream=stream)
    same, shorter = (Buffer.from_handle(buffer.handle, size) for size in (64, 32))
    assert buffer == same and hash(buffer) == hash(same) and len({buffer, same, other}) == 2
    assert buffer != shorter and buffer != other and buffer != buffer.handle
    kept = hash(buffer)
    buffer.close()
    assert hash(buffer) == kept and buffer == buffer and buffer != same  # whose the address is by now, nobody knows
    same.close()
    assert {same: 1}[same] == 1


def test_whose_memory_foreign_memory_is(device, stream, pinned):
    """The driver says it of an address, a resource of its own."""
    def answers(buffer):
        return (buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed, buffer.device_id, buffer.__dlpack_device__())

    on_device = device.allocate(64, stream=stream)
    assert answers(Buffer.from_handle(on_device.handle, 64)) == (True, False, False, 0, (2, 0))
    host, _ = pinned(np.arange(64, dtype=np.uint8))
    wrapped = Buffer.from_handle(host.handle, 64)
    assert answers(wrapped) == (True, True, False, 0, (3, 0))
    assert bytes(wrapped) == bytes(range(64)) and (np.asarray(wrapped) == np.arange(64)).all()
    managed = ManagedMemoryResource().allocate(64, stream=stream)
    stream.sync()
    assert answers(Buffer.from_handle(managed.handle, 64)) == (True, True, True, 0, (13, 0))
    pageable = np.arange(64, dtype=np.uint8)
    wrapped = Buffer.from_handle(pageable.ctypes.data, 64, owner=pageable)
    assert answers(wrapped) == (False, True, False, -1, (1, 0)) and (np.from_dlpack(wrapped) == pageable).all()

    class Claims(MemoryResource):
        device_id, is_device_accessible, is_host_accessible, is_managed = 0, True, False, False

        def deallocate(self, ptr, size, *, stream):
            pass

    assert answers(Buffer.from_handle(host.handle, 64, mr=Claims())) == (True, False, False, 0, (2, 0))
    managed.close()
    on_device.close()


def test_close_is_idempotent_and_final(device, stream, code):
    with device.allocate(4, stream=stream) as buffer:
        pass
    buffer.close()
    assert buffer.is_closed
    for use in (
        lambda: buffer.fill(0, stream=stream),
        lambda: buffer.copy_to(buffer, stream=stream),
        lambda: launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("increment"), buffer),
    ):
        with pytest.raises(ClosedError):
            use()


def test_foreign_memory(device, stream, pinned):
    host, view = pinned(np.zeros(4, np.uint8))
    owner = object()
    wrapped = Buffer.from_handle(host.handle, 4, owner=owner)
    wrapped.fill(9, stream=stream)
    assert wrapped.owner is owner and wrapped.memory_resource is None
    wrapped.close()  # waits: the owner may let the memory go now
    assert bytes(host) == b"\t" * 4 and wrapped.owner is None
    with pytest.raises(ValueError, match="no memory resource"):
        Buffer.from_handle(host.handle, 4).copy_to(stream=stream)
    with pytest.raises(TypeError, match="memory resource"):
        Buffer()


def test_foreign_memory_that_cannot_be(pinned):
    host, _ = pinned(np.zeros(4, np.uint8))
    for address, size in ((2**64 - 32, 64), (2**64 - 1, 2), (2**63 + 2, 2**63 - 1)):
        with pytest.raises(ValueError, match="lie outside all memory"):
            Buffer.from_handle(address, size)
    for owned in ({}, {"owner": object()}, {"mr": host.memory_resource}):
        with pytest.raises(TypeError, match="stream"):
            Buffer.from_handle(host.handle, 4, stream="0", **owned)


def test_the_stream_may_be_closed_first(device, pinned):
    stream, other = device.create_stream(), device.create_stream()
    buffer = device.allocate(64, stream=stream)
    buffer.fill(1, stream=stream)
    other.wait(stream)
    buffer.fill(2, stream=other)
    stream.close()
    other.close()
    buffer.close()


@simulated_only
@pytest.mark.thread_unsafe(reason="counts the streams of the whole process")
def test_a_closed_buffer_keeps_no_stream(device):
    from ftcuda.testing import simulation

    before = simulation.live()["stream"]
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    stream.close()
    assert simulation.live()["stream"] == before + 1  # the buffer is freed in it
    buffer.close()
    assert simulation.live()["stream"] == before
